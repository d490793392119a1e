/** A Redis of one test, which may be stopped, paused and started again without harm to others. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { connect } from 'node:net'
import { freePort } from './gateway.ts'
import { until } from './until.ts'

export interface OwnRedis {
  readonly url: string
  /** Runs `redis-cli` with these arguments and returns what it prints. */
  ask(...command: string[]): string
  /** Connections stay open and nothing is answered, until `resume`. */
  pause(): void
  resume(): void
  /** Ends it; what it kept is lost. */
  kill(): Promise<void>
  /** Starts it again, empty. */
  start(): Promise<void>
}

/** Returns false if redis-server is not installed. */
export function hasRedisServer(): boolean {
  try {
    execFileSync('redis-server', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

export async function startRedis(): Promise<OwnRedis> {
  const port = await freePort()
  let child: ChildProcess | null = null
  const end = (): void => void child?.kill('SIGKILL')
  async function start(): Promise<void> {
    child = spawn('redis-server', ['--bind', '127.0.0.1', '--port', String(port), '--save', '', '--appendonly', 'no'], {
      stdio: 'ignore',
    })
    process.once('exit', end)
    await until(() => answers(port))
  }
  await start()
  return {
    url: `redis://127.0.0.1:${port}`,
    ask: (...command) => execFileSync('redis-cli', ['-p', String(port), ...command], { encoding: 'utf8' }).trim(),
    pause: () => void child?.kill('SIGSTOP'),
    resume: () => void child?.kill('SIGCONT'),
    async kill() {
      const ended = new Promise((resolve) => child?.once('exit', resolve))
      end()
      process.off('exit', end)
      await ended
    },
    start,
  }
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'))
    socket.once('data', (data) => {
      socket.destroy()
      resolve(data.toString() === '+PONG\r\n')
    })
    socket.once('error', () => resolve(false))
  })
}
