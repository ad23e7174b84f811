import type { Seed } from '../seeds.ts'

export const agentium: Seed = {
  local: [
    ['backends: unix-local', 'unix-local runs programs of this machine in a directory of its own'],
    ['quick start', 'a workspace stays between runs until it is closed'],
    ['constructor', 'the constructor takes a backend, files, repositories and variables'],
    ['start', 'start makes the workspace once'],
    ['run: languages', 'run passes code to its interpreter as it is'],
    ['run: timeoutSeconds', 'a run that takes too long is killed with all that it started'],
    ['run: result', 'a result has the output, the exit code of a signal, and what was cut'],
    ['shell', 'shell takes the variables of the call and a directory'],
    ['close', 'close removes the workspace and ends what runs in it'],
    ['ready', 'ready is true between start and close'],
    ['compose with Agent', 'the methods of a sandbox are tools'],
    ['persistence across processes', 'another process goes on with a snapshot'],
    ['failures: a package is missing', 'a backend whose package is missing says which one'],
    ['failures: timeout', 'a run that takes too long is killed with all that it started'],
    ['failures: close', 'ready is true between start and close'],
  ],
  files: [
    ['writeFile', 'writeFile makes missing directories'],
    ['readFile', 'readFile reads text and base64'],
    ['snapshot', 'a snapshot has modes, symlinks and empty directories, and is plain JSON'],
    ['resume', 'resume brings back files and variables, and removes the workspace before'],
    ['failures: readFile', 'readFile is null only for a missing file'],
    ['failures: writeFile', 'no path leads out of the workspace'],
  ],
  remote: [
    ['backends: remote', 'start of a remote starts it and writes the files there'],
    ['run: remote', 'run and the files of a remote are those of the remote'],
    ['snapshot: remote', 'a snapshot of a remote that has none is empty'],
    ['close: remote', 'close closes the remote'],
    ['compose with CloudSandbox', 'a sandbox of an Islet server is a remote'],
    [
      'compose with CloudSandbox: snapshots',
      'a snapshot of an Islet sandbox is its files, or kept by the server',
    ],
    ['compose with CloudSandbox: E2B', 'an E2B sandbox is a remote through the package e2b'],
  ],
  docker: [
    ['backends: docker', 'docker runs programs in a container that has the workspace'],
    ['run: docker', 'a run in a container is killed with all that it started'],
    ['close: docker', 'the container is removed by close, and when the process that made it is killed'],
  ],
}
