# The first process of a new machine, whose root is $1: mounts what a machine has, makes that root the only one, and runs /root/leg.sh.
set -eu
root=$1
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
# The same hierarchies as outside. In a cgroup namespace they begin at the groups of this process.
if grep -q ' - cgroup ' /proc/self/mountinfo; then
  mount -t tmpfs -o mode=755 tmpfs "$root/sys/fs/cgroup"
  awk '{ n = split($0, half, " - "); split(half[1], left); split(half[2], right); if (right[1] ~ /^cgroup2?$/) print right[1], left[5], right[3] }' \
    /proc/self/mountinfo >"$root/root/cgroups"
  while read -r type at options; do
    mkdir -p "$root$at"
    options=$(printf %s "$options" | sed 's/^rw,\{0,1\}//')
    mount -t "$type" ${options:+-o "$options"} "$type" "$root$at"
  done <"$root/root/cgroups"
  rm "$root/root/cgroups"
else
  mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
  # Only a group without processes of its own can give controllers on.
  mkdir "$root/sys/fs/cgroup/init"
  echo $$ >"$root/sys/fs/cgroup/init/cgroup.procs"
fi
cd "$root"
mkdir -p old
pivot_root . old
umount --lazy /old
rmdir /old
exec sh /root/leg.sh
