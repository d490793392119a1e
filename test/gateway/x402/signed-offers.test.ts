import { expect } from 'chai'
import { createExactEvm } from '../../../gateway/methods/exact-evm/exact-evm.ts'
import { createRequirements } from '../../../gateway/x402/payment-requirements.ts'
import { NETWORKS } from '../../../gateway/config/networks.ts'
import { createOffers } from '../../../gateway/x402/signed-offers.ts'
import { ServiceError } from '../../../gateway/errors.ts'
import { createChallenges } from '../../../gateway/x402/challenge.ts'
import { catalogOf, OPERATION } from '../../support/operation.ts'
import { bodyOf, decode } from '../../support/quote.ts'

const payTo = '0x00000000000000000000000000000000000000A1'
const url = 'https://shop.example/v1/things'
const on = (name: keyof typeof NETWORKS) => createRequirements(OPERATION, createExactEvm(NETWORKS[name]), payTo)

describe('signed offers', () => {
  let seconds: number
  let signed: Readonly<Record<string, unknown>>[]
  beforeEach(() => {
    seconds = 1_795_000_000
    signed = []
  })
  const open = (graceSeconds: number) =>
    createOffers({
      sign: (statement) => `jws${signed.push(statement)}`,
      now: () => new Date(seconds * 1000),
      graceSeconds,
    })
  const until = (): number => Number(signed.at(-1)?.['validUntil'])

  it('state the terms on each network, with the fields of the extension', () => {
    const offers = open(300).of(url, [on('base'), on('base-sepolia')])
    expect(offers).to.deep.equal([
      { format: 'jws', acceptIndex: 0, signature: 'jws1' },
      { format: 'jws', acceptIndex: 1, signature: 'jws2' },
    ])
    expect(signed[1]).to.deep.equal({
      version: 1,
      resourceUrl: url,
      scheme: 'exact',
      network: 'eip155:84532',
      asset: NETWORKS['base-sepolia'].asset,
      payTo,
      amount: '5000',
      validUntil: until(),
    })
  })

  it('are signed once per address and period, and expire before the old price does', () => {
    const offers = open(300)
    for (let second = 0; second < 600; second++, seconds++) {
      offers.of(url, [on('base')])
      expect(until() - seconds).to.be.within(120, 270)
    }
    expect(signed.length).to.be.within(4, 6)
    offers.of(`${url}?limit=5`, [on('base')])
    expect(signed.at(-1)?.['resourceUrl']).to.equal(`${url}?limit=5`)
  })

  it('are not signed if old prices are honoured for less than a minute', () => {
    expect(open(0).of(url, [on('base')])).to.deep.equal([])
    expect(open(59).of(url, [on('base')])).to.deep.equal([])
    expect(signed).to.deep.equal([])
  })

  it('are neither signed nor kept for an address that leaves no room for them in the header', () => {
    const offers = open(300)
    for (let last = 0; last < 3; last += 1)
      expect(offers.of(`${url}/${'x'.repeat(30_000)}${last}`, [on('base')])).to.deep.equal([])
    expect(signed).to.deep.equal([])
    expect(offers.of(`${url}/${'x'.repeat(500)}`, [on('base')])).to.have.length(1)
  })

  it('are part of the 402, renewed in time: all in its body, and as many as there is room for in its header', () => {
    const sign = (): string => `jws.${'x'.repeat(600)}.${signed.push({})}`
    const offers = createOffers({ sign, now: () => new Date(seconds * 1000), graceSeconds: 300 })
    const others = [{ network: NETWORKS['base-sepolia'], payTo } as const]
    const quotes = (more: object) =>
      createChallenges({
        catalog: catalogOf(OPERATION),
        network: NETWORKS.base,
        formats: Object.values(NETWORKS).map(createExactEvm),
        payTo,
        baseUrl: 'https://shop.example',
        offers,
        ...more,
      })
    const required = new ServiceError('payment_required')
    const bare = `https://shop.example${OPERATION.path}`
    const { write, at } = quotes({})
    const first = write(OPERATION, bare, required)
    const offersIn = (quote: typeof first, ask = decode) =>
      (ask(quote).extensions as unknown as Record<string, { info: { offers: { signature: string }[] } }>)[
        'offer-receipt'
      ]?.info.offers ?? []
    expect(offersIn(first)).to.have.length(1)
    const address = 'https://shop.example/v1/things/nut/parts/9'
    const ofAddress = write(OPERATION, address, required)
    const again = at(OPERATION, address)
    const before = again()
    expect(again()).to.equal(before)
    expect(write(OPERATION, bare, required)).to.equal(first)
    expect(write(OPERATION, address, required)).to.equal(ofAddress)
    seconds += 300
    expect(offersIn(write(OPERATION, bare, required))).to.not.deep.equal(offersIn(first))
    expect(offersIn(write(OPERATION, address, required))).to.not.deep.equal(offersIn(ofAddress))
    expect(offersIn(again())).to.not.deep.equal(offersIn(before))
    const both = quotes({ others }).write(OPERATION, bare, required)
    expect(decode(both).accepts).to.have.length(2)
    expect(offersIn(both).length).to.be.below(2)
    expect(offersIn(both, bodyOf)).to.have.length(2)
    for (const quote of [first, both]) expect(quote.header.length).to.be.at.most(3_200)
  })
})
