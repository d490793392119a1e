import { expect } from 'chai'
import { createTimeouts, TimedOut } from '../../../gateway/editions/timeout.ts'
import { oneAtATime } from '../../../gateway/editions/mutex.ts'

function gate() {
  let open = (): void => {}
  const passed = new Promise<void>((resolve) => {
    open = resolve
  })
  return { passed, open: () => open() }
}

describe('work that must not overlap', () => {
  it('runs once more for all who asked while it ran, however many', async () => {
    const gates = [gate(), gate(), gate()]
    let runs = 0
    let running = 0
    const ask = oneAtATime(async () => {
      const mine = runs++
      expect(running++).to.equal(0)
      await gates[mine]?.passed
      running -= 1
      return mine
    })
    const first = ask()
    const later = [ask(), ask(), ask()]
    gates.forEach(({ open }) => open())
    expect(await first).to.equal(0)
    expect(await Promise.all(later)).to.deep.equal([1, 1, 1])
    expect(await ask()).to.equal(2)
  })

  it('runs again after a failure, which only its own callers hear of', async () => {
    let runs = 0
    const ask = oneAtATime(async () => {
      runs += 1
      await new Promise((wake) => setTimeout(wake, 1))
      if (runs === 1) throw new Error('the first fails')
      return runs
    })
    const [first, second] = await Promise.allSettled([ask(), ask()])
    expect(first).to.include({ status: 'rejected' })
    expect(second).to.deep.equal({ status: 'fulfilled', value: 2 })
  })
})

describe('patience', () => {
  const held = gate()
  const ends: unknown[] = []
  const waiting = <Value>(seconds: number, run: () => Promise<Value>) => ({
    seconds,
    what: 'does not end',
    run,
    late: (ended: unknown) => void ends.push(ended),
  })

  it('ends a wait, refuses at once what still hangs, and begins anew when that has ended', async () => {
    const patience = createTimeouts()
    let begun = 0
    const work = async (): Promise<number> => {
      begun += 1
      await held.passed
      return begun
    }
    const late = await patience('a', waiting(0.01, work)).catch((error: unknown) => error)
    expect(late).to.be.instanceOf(TimedOut)
    expect((late as Error).message).to.match(/^does not end within 0\.01 seconds/)
    const again = await patience('a', waiting(60, work)).catch((error: unknown) => error)
    expect(again).to.be.instanceOf(TimedOut)
    expect([begun, ends]).to.deep.equal([1, []])
    held.open()
    await held.passed
    await new Promise((wake) => setImmediate(wake))
    expect(await patience('a', waiting(60, work))).to.equal(2)
    expect(ends).to.deep.equal([{ value: 1 }])
  })

  it('passes on what work gives, and how it fails, also when that is late', async () => {
    const patience = createTimeouts()
    const failing = gate()
    const error = new Error('its own')
    expect(
      await patience(
        'a',
        waiting(1, async () => 7),
      ),
    ).to.equal(7)
    expect(
      await patience(
        'a',
        waiting(1, async () => Promise.reject(error)),
      ).catch(String),
    ).to.equal('Error: its own')
    ends.length = 0
    const fails = (): Promise<never> => failing.passed.then(() => Promise.reject(error))
    expect(await patience('a', waiting(0.01, fails)).catch((late: unknown) => late)).to.be.instanceOf(TimedOut)
    failing.open()
    await new Promise((wake) => setImmediate(wake))
    expect(ends).to.deep.equal([{ error }])
  })
})
