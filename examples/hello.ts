import { Sandbox } from 'islet'

await using sandbox = await Sandbox.create({ resources: { memory: '512Mi', cpu: '500m' } })
await sandbox.files.write('hello.py', 'print("hello from", __import__("socket").gethostname())')
const { stdout, exitCode } = await sandbox.exec.run('python3 hello.py', { timeout: '10s' })
console.log(exitCode, stdout)

// A copy of the sandbox: same files, its own processes, in milliseconds.
await using copy = await sandbox.fork()
console.log(await copy.files.read('hello.py'))
