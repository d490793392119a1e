import { expect } from 'chai'
import { createFlights } from '../../../gateway/payments/in-flight.ts'
import type { DecodedPayment } from '../../../gateway/methods/payment-method.ts'

const passenger = { payment: { key: 'k' } as DecodedPayment, fingerprint: 'f', identifier: null, place: null }

describe('a payment in flight', () => {
  it('takes off once, however often it is tried', () => {
    const flights = createFlights<string>()
    expect(flights.takeOff(passenger)).to.not.equal(null)
    expect(flights.takeOff(passenger)).to.equal(null)
  })

  it('gives its result to everybody who waits', async () => {
    const flights = createFlights<string>()
    const flight = flights.takeOff(passenger)
    const twins = [1, 2, 3].map(() => flights.find('k')?.landed ?? Promise.resolve(null))
    flight?.land({ result: 'bars' })
    expect(await Promise.all(twins)).to.deep.equal([1, 2, 3].map(() => ({ result: 'bars' })))
  })

  it('can take off again after it has landed, and an old landing does not end the new flight', () => {
    const flights = createFlights<string>()
    const first = flights.takeOff(passenger)
    first?.land(null)
    flights.takeOff(passenger)
    first?.land(null)
    expect(flights.find('k')).to.not.equal(undefined)
  })

  it('is waited for by whoever wants everything to have ended', async () => {
    const flights = createFlights<string>()
    const flight = flights.takeOff(passenger)
    let idle = false
    const waiting = flights.idle().then(() => (idle = true))
    await Promise.resolve()
    expect(idle).to.equal(false)
    flight?.land(null)
    await waiting
    expect(idle).to.equal(true)
  })

  it('counts among what its payer has promised once it is known to be his, until it has landed', () => {
    const flights = createFlights<string>()
    const of = (payer: string, identity: string, amount: bigint) => {
      const key = `${payer}/${identity}`
      const payment = { key, network: 'eip155:8453', payer, identity, amount } as unknown as DecodedPayment
      return { ...passenger, payment }
    }
    const [one, other, stranger] = [of('0xa', '1', 5n), of('0xa', '2', 7n), of('0xb', '1', 9n)]
    const values = (of: typeof one) => flights.ahead(of).map(({ amount }) => amount)
    const flight = flights.takeOff(one)
    expect(values(other)).to.deep.equal([])
    flight?.commit()
    flights.takeOff(stranger)?.commit()
    expect([values(other), values(one), values(stranger)]).to.deep.equal([[5n], [], []])
    flights.takeOff(other)?.commit()
    expect([values(other), values(one)], 'in their order').to.deep.equal([[5n], []])
    flight?.land(null)
    flight?.commit()
    expect(values(other)).to.deep.equal([])
  })
})
