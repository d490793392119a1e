import { expect } from 'chai'
import { keepLease } from '../../../gateway/stores/lease.ts'

/** A lease whose database answers when `answer` is called. */
function slowLease() {
  const waiting: (() => void)[] = []
  return {
    hold: () => new Promise<boolean>((resolve) => waiting.push(() => resolve(true))),
    answer: () => waiting.splice(0).forEach((each) => each()),
  }
}

describe('a kept lease', () => {
  it('is not held once it was stopped, so that nothing begins to use a database that is about to close', async () => {
    const lease = slowLease()
    const kept = keepLease(lease, 'test', () => {})
    const held = kept.hold()
    const stopped = kept.stop()
    lease.answer()
    expect(await held).to.equal(false)
    await stopped
    expect(await kept.hold()).to.equal(false)
  })

  it('is stopped when the last query for it has ended', async () => {
    const lease = slowLease()
    const kept = keepLease(lease, 'test', () => {})
    const held = kept.hold()
    let isStopped = false
    const stopped = kept.stop().then(() => (isStopped = true))
    await new Promise((resolve) => setImmediate(resolve))
    expect(isStopped).to.equal(false)
    lease.answer()
    await Promise.all([held, stopped])
    expect(isStopped).to.equal(true)
  })
})
