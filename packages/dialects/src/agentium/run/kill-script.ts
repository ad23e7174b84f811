// What descendants.ts does, as a shell script for a computer elsewhere: ends every process that has a mark in its environment and, where each run
// is a session of its own, every process of such a session. It is run without that mark.
import { MARK } from './descendants.ts'

/** `hasSession`: the run leads a session of its own. Exit code 0: none of its processes is left. */
export function killScript(mark: string, { hasSession }: { hasSession: boolean }): string[] {
  return ['/bin/sh', '-c', SCRIPT, 'kill', `${MARK}=${mark}`, hasSession ? 'session' : '']
}

// The fields of stat after the name: state, parent, group, session. Session 0 is outside of a container, 1 that of its init process.
const SCRIPT = `
mark=$1 kind=$2
lives() {
  stat=$(cat $1/stat 2>/dev/null) || return 1
  set -- \${stat##*) }
  session=$4
  case "$1" in Z | X) return 1 ;; esac
}
found() {
  sessions=' '
  for dir in /proc/[0-9]*; do
    tr '\\0' '\\n' <$dir/environ 2>/dev/null | grep -qxF "$mark" && lives $dir || continue
    echo \${dir#/proc/}
    if [ "$kind" ] && [ "$session" -gt 1 ]; then sessions="$sessions$session "; fi
  done
  for dir in /proc/[0-9]*; do
    lives $dir || continue
    case "$sessions" in *" $session "*) echo \${dir#/proc/} ;; esac
  done
}
for round in 1 2 3 4 5 6 7 8 9 10; do
  pids=$(found)
  [ "$pids" ] || exit 0
  # Stopped first: a shell would otherwise report the death of its child.
  kill -STOP $pids 2>/dev/null
  kill -KILL $pids 2>/dev/null
done
exit 1`
