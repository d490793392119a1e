import { expect } from 'chai'
import { ChangeCheck } from '../../../plugins/lib/change-check.ts'

/** A check whose looks end when the test says. */
function openCheck(everyMs: number) {
  const ends: { readonly resolve: () => void; readonly reject: (error: Error) => void }[] = []
  const look = () => new Promise<void>((resolve, reject) => void ends.push({ resolve, reject }))
  const check = new ChangeCheck(look, everyMs)
  return { check, ends }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))

describe('the check for changes', () => {
  const realNow = performance.now
  let now = 0
  beforeEach(() => {
    now = 5
    performance.now = () => now
  })
  afterEach(() => {
    performance.now = realNow
  })

  it('looks once for all callers, and again when its time has passed since the look began', async () => {
    const { check, ends } = openCheck(1000)
    const callers = [check.run(), check.run()]
    now += 300
    ends[0]!.resolve()
    await Promise.all([...callers, check.run()])
    now += 699
    await check.run()
    expect(ends).to.have.length(1)
    now += 1
    const late = check.run()
    expect(ends).to.have.length(2)
    ends[1]!.resolve()
    await late
  })

  it('looks again after a write, also if a look was under way that may have missed it', async () => {
    const { check, ends } = openCheck(1000)
    const before = check.run()
    check.expire()
    let isSeen = false
    const after = check.run().then(() => (isSeen = true))
    ends[0]!.resolve()
    await before
    await settled()
    expect([ends.length, isSeen]).to.deep.equal([2, false])
    ends[1]!.resolve()
    await after
    await check.run()
    expect(ends).to.have.length(2)
  })

  it('fails for those who wait when a look fails, and looks again for the next', async () => {
    const { check, ends } = openCheck(1000)
    const callers = Promise.allSettled([check.run(), check.run()])
    ends[0]!.reject(new Error('no database'))
    expect((await callers).map(({ status }) => status)).to.deep.equal(['rejected', 'rejected'])
    const next = check.run()
    ends[1]!.resolve()
    await next
    expect(ends).to.have.length(2)
  })
})
