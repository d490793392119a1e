import { expect } from 'chai'
import { oneAtATime } from '../../../gateway/editions/swap.ts'

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
