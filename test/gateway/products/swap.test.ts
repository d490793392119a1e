import { setImmediate } from 'node:timers/promises'
import { expect } from 'chai'
import type { Edition } from '../../../gateway/products/edition.ts'
import { SETUP_FAILED } from '../../../gateway/products/instantiate.ts'
import { type BuildEdition, createSwap, oneAtATime } from '../../../gateway/products/swap.ts'
import { createLog } from '../../../gateway/observe/log.ts'
import { gold, openCatalog, openEditionBuilder, type TestCatalog } from '../../support/catalog.ts'
import { type HeldTimers, holdTimers } from '../../support/held-timers.ts'
import { until } from '../../support/until.ts'

function gate() {
  let open = (): void => {}
  const passed = new Promise<void>((resolve) => {
    open = resolve
  })
  return { passed, open: () => open() }
}

describe('reloads of the catalog', () => {
  it('share one more run between all callers that arrive during a run', async () => {
    const gates = [gate(), gate(), gate()]
    let runs = 0
    let running = 0
    const reload = oneAtATime(async () => {
      const run = runs++
      expect(running++).to.equal(0)
      await gates[run]?.passed
      running -= 1
      return run
    })
    const first = reload()
    const later = [reload(), reload(), reload()]
    gates.forEach(({ open }) => open())
    expect(await first).to.equal(0)
    expect(await Promise.all(later)).to.deep.equal([1, 1, 1])
    expect(await reload()).to.equal(2)
  })

  it('run again after a failure, and reject only the callers of the failed run', async () => {
    let runs = 0
    const reload = oneAtATime(async () => {
      runs += 1
      await Promise.resolve()
      if (runs === 1) throw new Error('the first fails')
      return runs
    })
    const [first, second] = await Promise.allSettled([reload(), reload()])
    expect(first).to.include({ status: 'rejected' })
    expect(second).to.deep.equal({ status: 'fulfilled', value: 2 })
  })
})

describe('the swap of an edition', () => {
  it('tells every listener and ends the previous edition, also if a listener throws', async () => {
    const catalog = openCatalog({ 'gold.json': gold() })
    const builder = await openEditionBuilder(catalog)
    const swap = createSwap({ prepare: async () => {}, now: builder.now, log: createLog('silent') })
    try {
      await swap.open((previous) => builder.build(previous ? { previous } : {}))
      const first = swap.current
      const stopped: Edition[] = []
      first.stopJobs = async (next) => void stopped.push(next)
      const told: string[] = []
      swap.onEdition(() => {
        told.push('first')
        throw new Error('a listener failed')
      })
      swap.onEdition(() => void told.push('second'))
      catalog.write('gold.json', gold({ price: '0.006' }))
      expect(await swap.reload()).to.deep.equal([])
      expect(swap.current).not.to.equal(first)
      expect(told).to.deep.equal(['first', 'second'])
      expect(stopped).to.deep.equal([swap.current])
    } finally {
      await swap.close()
      await builder.close()
      catalog.close()
    }
  })
})

describe('a reload that fails or hangs', () => {
  let catalog: TestCatalog
  let builder: Awaited<ReturnType<typeof openEditionBuilder>>
  let timers: HeldTimers | undefined
  beforeEach(async () => {
    catalog = openCatalog({ 'gold.json': gold() })
    builder = await openEditionBuilder(catalog)
  })
  afterEach(async () => {
    timers?.release()
    await builder.close()
    catalog.close()
  })
  const build: BuildEdition = (previous) => builder.build(previous ? { previous } : {})

  it('is tried again by itself, so that a new price that came while the database was away is asked soon after', async () => {
    let isAway = false
    const prepare = async (): Promise<void> => {
      if (isAway) throw new Error('PostgreSQL does not answer')
    }
    const swap = createSwap({ prepare, now: builder.now, log: createLog('silent'), retryMs: 5 })
    await swap.open(async (previous) => {
      const built = await build(previous)
      // What is not used is not waited for.
      if (isAway) built.edition.stop = () => new Promise(() => {})
      return built
    })
    isAway = true
    catalog.write('gold.json', gold({ price: '0.006' }))
    const failure = await swap.reload().catch((error: Error) => error.message)
    expect(failure).to.equal('PostgreSQL does not answer')
    expect(swap.current.catalog.operations.get('getGold')?.price).to.equal(5_000n)
    isAway = false
    await until(() => swap.current.catalog.operations.get('getGold')?.price === 6_000n)
    await swap.close()
  })

  it('tries to set up a product again, and keeps the edition until that succeeds, so that event streams stay open', async () => {
    timers = holdTimers()
    const failure = { file: 'silver.json', pointer: '/plugin', rule: SETUP_FAILED, message: 'the source is away' }
    let builds = 0
    const swap = createSwap({ prepare: async () => {}, now: builder.now, log: createLog('silent') })
    const editions: Edition[] = []
    await swap.open(async (previous) => {
      if (previous) editions.push(previous)
      builds += 1
      const built = await build(previous)
      return builds < 4 ? { ...built, issues: [failure] } : built
    })
    const first = swap.current
    const stop = first.stop.bind(first)
    let isReplaced = false
    first.stop = async () => {
      isReplaced = true
      await stop()
    }
    while (!isReplaced) {
      timers.fire()
      await setImmediate()
    }
    expect(editions).to.deep.equal([first, first, first])
    expect(swap.current).not.to.equal(first)
    timers.fire()
    await setImmediate()
    expect(builds, 'nothing is left to try').to.equal(4)
    await swap.close()
  })

  it('does not keep the gateway from closing, and an edition that comes later is stopped and never served', async () => {
    const gateOfBuild = gate()
    const stopped: Edition[] = []
    let builds = 0
    const swap = createSwap({ prepare: async () => {}, now: builder.now, log: createLog('silent'), closeMs: 5 })
    await swap.open(async (previous) => {
      builds += 1
      if (builds > 1) await gateOfBuild.passed
      const built = await build(previous)
      const stop = built.edition.stop.bind(built.edition)
      built.edition.stop = async () => {
        stopped.push(built.edition)
        await stop()
      }
      return built
    })
    const first = swap.current
    catalog.write('gold.json', gold({ price: '0.006' }))
    const reload = swap.reload()
    await until(() => builds > 1)
    await swap.close()
    expect([swap.current, stopped]).to.deep.equal([first, [first]])
    gateOfBuild.open()
    await reload
    expect(swap.current).to.equal(first)
    expect(stopped).to.have.length(2)
    expect(stopped[1]?.catalog.operations.get('getGold')?.price).to.equal(6_000n)
  })
})
