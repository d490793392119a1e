/** Compares again and again, one comparison at a time and in one process at a time, and keeps the last result. */
import type { Logger } from '../../plugin/plugin.ts'
import { ALARMING } from './buckets.ts'
import type { Comparison } from './reconciliation.ts'
import type { Row, Rows } from './rows.ts'

export interface Watcher {
  /** Compares now; a call while one is under way gets that one's result. */
  run(): Promise<Comparison>
  last(): Comparison | null
  /** Rows somebody should look at, newest first. */
  rows(limit: number): Promise<readonly Row[]>
  start(everySeconds: number): void
  stop(): Promise<void>
}

export interface WatcherParts {
  readonly compare: () => Promise<Comparison>
  readonly rows: Rows
  readonly lease: { hold(name: string, seconds: number): Promise<boolean> }
  readonly onCompared: (comparison: Comparison) => void
  readonly log: Logger
}

const LEASE = 'gateway/reconciliation'
const LEASE_EXTRA_SECONDS = 120

export function createWatcher({ compare, rows, lease, onCompared, log }: WatcherParts): Watcher {
  let last: Comparison | null = null
  let underWay: Promise<Comparison> | null = null
  let timer: NodeJS.Timeout | undefined

  async function once(): Promise<Comparison> {
    try {
      last = await compare()
      onCompared(last)
      return last
    } finally {
      underWay = null
    }
  }
  const run = (): Promise<Comparison> => (underWay ??= once())

  async function tick(everySeconds: number): Promise<void> {
    if (await lease.hold(LEASE, everySeconds + LEASE_EXTRA_SECONDS)) await run()
  }

  return {
    run,
    last: () => last,
    rows: (limit) => rows.list(ALARMING, limit),
    start(everySeconds) {
      const again = (): void =>
        void tick(everySeconds).catch((error: unknown) => log.error({ err: error }, 'reconciliation failed'))
      timer = setInterval(again, everySeconds * 1000).unref()
      again()
    },
    async stop() {
      clearInterval(timer)
      await underWay?.catch(() => {})
    },
  }
}
