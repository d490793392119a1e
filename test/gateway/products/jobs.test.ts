import { expect } from 'chai'
import { pino } from 'pino'
import { Unavailable } from '../../../gateway/errors.ts'
import type { Edition } from '../../../gateway/products/edition.ts'
import { createJobs } from '../../../gateway/products/jobs.ts'
import { createLog } from '../../../gateway/observe/log.ts'
import type { Ask } from '../../../gateway/plugin/plugin.ts'
import { job } from '../../fixtures/plugins/counter/index.ts'
import { gold, openCatalog, openEditionBuilder, type TestCatalog } from '../../support/catalog.ts'
import { until } from '../../support/until.ts'

const COUNTER = {
  product: 'counter',
  title: 'Counter',
  summary: 'Counts.',
  plugin: 'counter',
  uses: ['getGold'],
  operations: { getCount: { route: 'GET /v1/count', summary: 'Count.', price: 'free', response: { type: 'object' } } },
}

describe('a job', () => {
  let catalog: TestCatalog
  let builder: Awaited<ReturnType<typeof openEditionBuilder>>
  let edition: Edition

  beforeEach(async () => {
    Object.assign(job, { runs: [], fail: false, hold: null })
    catalog = openCatalog({ 'gold.json': gold(), 'counter.json': COUNTER })
    builder = await openEditionBuilder(catalog)
    edition = (await builder.build()).edition
  })

  afterEach(async () => {
    await edition.stop()
    await builder.close()
    catalog.close()
  })

  const counts = async () =>
    (await edition.facts())['counter']?.['jobs'] as { count: { runs: number; failures: number } }

  /** Resolves once another job of the same interval has run three more times: timers of one process fire in order. */
  async function severalIntervals(): Promise<void> {
    let runs = 0
    const run = async (): Promise<void> => void (runs += 1)
    const other = createJobs({
      product: 'other',
      jobs: [{ name: 'count', everySeconds: 0.01, run }],
      askNow: () => null as unknown as Ask,
      lease: undefined,
      log: createLog('silent'),
    })
    other.start()
    await until(() => runs > 3)
    await other.stop()
  }

  it('does not run before the edition is started', async () => {
    await severalIntervals()
    expect(job.runs).to.deep.equal([])
  })

  it('runs at once and then at its interval, and calls other products with the asOf of each run', async () => {
    edition.start()
    await until(() => job.runs.length >= 1)
    expect(job.runs[0]).to.deep.equal({ price: 1900, asOf: '2026-06-01T12:00:00.000Z' })
    builder.advance(60)
    const runsBefore = job.runs.length
    await until(() => job.runs.length >= runsBefore + 2)
    expect(job.runs.at(-1)?.asOf).to.equal('2026-06-01T12:01:00.000Z')
  })

  it('that runs once a month waits for it, though no timer of Node lasts so long', async () => {
    let runs = 0
    const jobs = createJobs({
      product: 'counter',
      jobs: [{ name: 'monthly', everySeconds: 31 * 86_400, run: async () => void (runs += 1) }],
      askNow: () => (async () => {}) as unknown as Ask,
      lease: undefined,
      log: createLog('silent'),
    })
    jobs.start()
    await until(() => runs > 0)
    await severalIntervals()
    expect(runs).to.equal(1)
    await jobs.stop()
  })

  it('never overlaps itself, however often the edition is started', async () => {
    let release = (): void => {}
    job.hold = new Promise((resolve) => (release = resolve))
    edition.start()
    edition.start()
    await severalIntervals()
    expect((await counts()).count.runs).to.equal(0)
    job.hold = null
    release()
    await until(async () => (await counts()).count.runs >= 1)
    await until(() => job.runs.length >= 2)
  })

  it('counts a failure and runs again after it', async () => {
    job.fail = true
    edition.start()
    await until(async () => (await counts()).count.failures >= 2)
    job.fail = false
    await until(() => job.runs.length >= 1)
    expect((await counts()).count.failures).to.be.at.least(2)
  })

  it('stops with the last edition that uses its product', async () => {
    edition.start()
    const next = (await builder.build({ previous: edition })).edition
    next.start()
    await edition.stop()
    const runsBefore = job.runs.length
    await until(() => job.runs.length > runsBefore)
    await next.stop()
    const runsAfter = job.runs.length
    await severalIntervals()
    expect(job.runs.length).to.equal(runsAfter)
  })

  it('calls other products in the edition that was started last', async () => {
    edition.start()
    catalog.write('gold.json', gold({}, { plugin: 'gold@2' }))
    const next = (await builder.build({ previous: edition })).edition
    next.start()
    await edition.stop()
    await until(() => job.runs.at(-1)?.price === 2)
    await next.stop()
    expect(job.runs.at(-1)?.price).to.equal(2)
  })

  it('is aborted if its process has lost the lease, and is no failure', async function () {
    this.timeout(15_000)
    const answers = [true]
    let ended: string | null = null
    const jobs = createJobs({
      product: 'counter',
      jobs: [
        {
          name: 'count',
          everySeconds: 60,
          async run({ signal }) {
            await new Promise((resolve) => signal.addEventListener('abort', resolve))
            ended = 'aborted'
            signal.throwIfAborted()
          },
        },
      ],
      askNow: () => null as unknown as Ask,
      lease: { hold: async () => answers.shift() ?? false },
      log: createLog('silent'),
    })
    jobs.start()
    try {
      await until(() => ended !== null)
      await severalIntervals()
      expect(jobs.counts()).to.deep.equal({ count: { runs: 1, failures: 0 } })
    } finally {
      await jobs.stop()
    }
  })

  it('waits for data that another product is still loading, which is no failure', async () => {
    const lines: { level: string; msg: string; reason?: string }[] = []
    const log = pino({ level: 'info', formatters: { level: (level) => ({ level }) } }, {
      write: (line: string) => void lines.push(JSON.parse(line) as (typeof lines)[number]),
    }) // prettier-ignore
    let waits = 1
    let isDone = false
    const jobs = createJobs({
      product: 'counter',
      jobs: [
        {
          name: 'count',
          everySeconds: 0.05,
          async run() {
            if (waits-- > 0) throw new Unavailable('7% of the bars are loaded.')
            isDone = true
          },
        },
      ],
      askNow: () => null as unknown as Ask,
      lease: { hold: async () => true },
      log,
    })
    jobs.start()
    try {
      await until(() => isDone)
      expect(jobs.counts()['count']).to.include({ failures: 0 })
      expect(lines.map(({ level, msg, reason }) => [level, msg, reason])).to.deep.equal([
        ['info', 'a job waits for data', '7% of the bars are loaded.'],
      ])
    } finally {
      await jobs.stop()
    }
  })

  it('runs only in the process that holds its lease', async () => {
    await edition.stop()
    const requests: string[] = []
    let isGranted = false
    const lease = {
      async hold(name: string, seconds: number) {
        requests.push(`${name} ${seconds}`)
        return isGranted
      },
    }
    edition = (await builder.build({ lease })).edition
    edition.start()
    await until(() => requests.length >= 3)
    expect(job.runs).to.deep.equal([])
    expect(requests[0]).to.equal('counter/count 20')
    isGranted = true
    await until(() => job.runs.length >= 1)
  })

  it('runs when the timers of a test say so, and not by itself', async () => {
    await edition.stop()
    let time = 0
    const due: { at: number; run: () => Promise<void> }[] = []
    const timers = {
      now: () => time,
      after: (ms: number, run: () => Promise<void>) => {
        const entry = { at: time + ms, run }
        due.push(entry)
        return { cancel: () => void due.splice(due.indexOf(entry), 1) }
      },
    }
    edition = (await builder.build({ timers })).edition
    edition.start()
    await severalIntervals()
    expect(job.runs).to.deep.equal([])
    await due.shift()!.run()
    expect(job.runs).to.have.length(1)
    expect(due.map(({ at }) => at)).to.deep.equal([10])
    time = due[0]!.at
    await due.shift()!.run()
    expect(job.runs).to.have.length(2)
    await edition.stop()
    expect(due).to.deep.equal([])
  })
})
