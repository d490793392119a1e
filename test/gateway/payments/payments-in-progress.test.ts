import { expect } from 'chai'
import { createPaymentsInProgress } from '../../../gateway/payments/payments-in-progress.ts'
import type { DecodedPayment } from '../../../gateway/methods/payment-method.ts'

const NOW = 1_800_000_000
const requestOf = (payer = '0xa', identity = '1', amount = 5n) => {
  const key = `${payer}/${identity}`
  const expiresAt = BigInt(NOW + 300)
  const payment = { key, network: 'eip155:8453', payer, identity, amount, expiresAt } as unknown as DecodedPayment
  return { payment, fingerprint: 'f', identifier: null, place: null }
}
const request = requestOf()

describe('a payment in progress', () => {
  let seconds: number
  const create = () => createPaymentsInProgress<string>(() => new Date(seconds * 1000))
  beforeEach(() => (seconds = NOW))

  it('starts once, however many requests carry it', () => {
    const inProgress = create()
    expect(inProgress.start(request)).to.not.equal(null)
    expect(inProgress.start(request)).to.equal(null)
  })

  it('gives its result to every duplicate request', async () => {
    const inProgress = create()
    const work = inProgress.start(request)
    const duplicates = [1, 2, 3].map(() => inProgress.find(request.payment.key)?.outcome ?? Promise.resolve(null))
    work?.finish({ result: 'bars' })
    expect(await Promise.all(duplicates)).to.deep.equal([1, 2, 3].map(() => ({ result: 'bars' })))
  })

  it('is busy while it is in progress or its settlement is watched', () => {
    const inProgress = create()
    const { key } = request.payment
    const work = inProgress.start(request)
    const stopWatching = inProgress.watch(key)
    work?.finish({ result: 'bars' })
    expect([inProgress.isBusy(key), inProgress.find(key)]).to.deep.equal([true, undefined])
    stopWatching()
    expect(inProgress.isBusy(key)).to.equal(false)
  })

  it('can start again once it has finished, and finishing the first one again does not end the second', () => {
    const inProgress = create()
    const first = inProgress.start(request)
    first?.finish(null)
    inProgress.start(request)
    first?.finish(null)
    expect(inProgress.find(request.payment.key)).to.not.equal(undefined)
  })

  it('keeps the process busy until it has finished', async () => {
    const inProgress = create()
    const work = inProgress.start(request)
    let idle = false
    const waiting = inProgress.idle().then(() => (idle = true))
    await new Promise((resolve) => setImmediate(resolve))
    expect(idle).to.equal(false)
    work?.finish({ error: new Error('no') })
    await waiting
    expect(idle).to.equal(true)
  })
})

describe('the balance held for payments in progress', () => {
  let seconds: number
  const create = () => createPaymentsInProgress<string>(() => new Date(seconds * 1000))
  beforeEach(() => (seconds = NOW))
  const [first, second, ofAnotherPayer] = [
    requestOf('0xa', '1', 5n),
    requestOf('0xa', '2', 7n),
    requestOf('0xb', '1', 9n),
  ]

  it('counts for later payments of the same payer, from the proof of the payment to its end', () => {
    const inProgress = create()
    const amounts = ({ payment }: typeof first) => inProgress.heldBefore(payment).map(({ amount }) => amount)
    const work = inProgress.start(first)
    expect(amounts(second)).to.deep.equal([])
    work?.holdBalance()
    inProgress.start(ofAnotherPayer)?.holdBalance()
    expect([amounts(second), amounts(first), amounts(ofAnotherPayer)]).to.deep.equal([[5n], [], []])
    inProgress.start(second)?.holdBalance()
    expect([amounts(second), amounts(first)], 'in the order of the payments').to.deep.equal([[5n], []])
    work?.finish(null)
    work?.holdBalance()
    expect(amounts(second)).to.deep.equal([])
  })

  it('stays held while the money may still move, until the outcome is known', () => {
    const inProgress = create()
    const held = () => inProgress.heldBefore(second.payment).length
    const work = inProgress.start(first)
    work?.holdBalance()
    work?.finish({ error: new Error('pending') }, { keepHold: true })
    expect(held()).to.equal(1)
    const retry = inProgress.start(first)
    inProgress.releaseHold(first.payment)
    expect(held(), 'while the payment is in progress again').to.equal(1)
    retry?.finish({ result: 'bars' })
    expect(held()).to.equal(0)
  })

  it('ends a minute after the payment has expired, because no block can take it any more', () => {
    const inProgress = create()
    const work = inProgress.start(first)
    work?.holdBalance()
    work?.finish({ error: new Error('pending') }, { keepHold: true })
    seconds = NOW + 300 + 60
    expect(inProgress.heldBefore(second.payment)).to.have.length(1)
    seconds += 1
    expect(inProgress.heldBefore(second.payment)).to.have.length(0)
  })
})
