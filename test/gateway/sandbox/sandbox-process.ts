/** A process that opens the sandbox in a folder and stays open until a test kills it. */
import { openSandbox } from '../../../gateway/sandbox/sandbox.ts'
import { quiet } from './usdc-client.ts'

const sandbox = await openSandbox({ dataDir: process.argv[2] as string, blockSeconds: 0, log: quiet })
await sandbox.describe('http://127.0.0.1:4021')
process.stdout.write(`${JSON.stringify({ pid: sandbox.pid, rpcUrl: sandbox.rpcUrl })}\n`)
setInterval(() => undefined, 60_000)
