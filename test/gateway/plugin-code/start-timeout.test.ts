import { expect } from 'chai'
import { createTimeouts, TimedOut } from '../../../gateway/plugin-code/start-timeout.ts'

function gate() {
  let open = (): void => {}
  const passed = new Promise<void>((resolve) => {
    open = resolve
  })
  return { passed, open: () => open() }
}

describe('a timeout of plugin code', () => {
  const slow = gate()
  const lateResults: unknown[] = []
  const workOf = <Value>(seconds: number, run: () => Promise<Value>) => ({
    seconds,
    what: 'does not end',
    run,
    late: (ended: unknown) => void lateResults.push(ended),
  })

  it('stops waiting, refuses at once while the work still runs, and starts again after it has ended', async () => {
    const timeouts = createTimeouts()
    let started = 0
    const work = async (): Promise<number> => {
      started += 1
      await slow.passed
      return started
    }
    const first = await timeouts('a', workOf(0.01, work)).catch((error: unknown) => error)
    expect(first).to.be.instanceOf(TimedOut)
    expect((first as Error).message).to.match(/^does not end within 0\.01 seconds/)
    const second = await timeouts('a', workOf(60, work)).catch((error: unknown) => error)
    expect(second).to.be.instanceOf(TimedOut)
    expect([started, lateResults]).to.deep.equal([1, []])
    slow.open()
    await slow.passed
    await new Promise((wake) => setImmediate(wake))
    expect(await timeouts('a', workOf(60, work))).to.equal(2)
    expect(lateResults).to.deep.equal([{ value: 1 }])
  })

  it('passes on the value and the error of the work, even after the timeout', async () => {
    const timeouts = createTimeouts()
    const failing = gate()
    const error = new Error('its own')
    expect(
      await timeouts(
        'a',
        workOf(1, async () => 7),
      ),
    ).to.equal(7)
    expect(
      await timeouts(
        'a',
        workOf(1, async () => Promise.reject(error)),
      ).catch(String),
    ).to.equal('Error: its own')
    lateResults.length = 0
    const failLate = (): Promise<never> => failing.passed.then(() => Promise.reject(error))
    expect(await timeouts('a', workOf(0.01, failLate)).catch((late: unknown) => late)).to.be.instanceOf(TimedOut)
    failing.open()
    await new Promise((wake) => setImmediate(wake))
    expect(lateResults).to.deep.equal([{ error }])
  })
})
