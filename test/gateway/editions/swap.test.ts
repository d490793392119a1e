import { expect } from 'chai'
import type { Edition } from '../../../gateway/editions/edition.ts'
import { createSwap, oneAtATime } from '../../../gateway/editions/swap.ts'
import { createLog } from '../../../gateway/observe/log.ts'
import { gold, openCatalog, openEditionBuilder } from '../../support/catalog.ts'

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
      await new Promise((wake) => setTimeout(wake, 1))
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
