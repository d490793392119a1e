import { parsePaymentRequired } from '@x402/core/schemas'
import { expect } from 'chai'
import { createExactEvm } from '../../../gateway/methods/exact-evm/exact-evm.ts'
import { createRequirements } from '../../../gateway/x402/payment-requirements.ts'
import type { Operation } from '../../../gateway/plugin/catalog.ts'
import { ServiceError } from '../../../gateway/errors.ts'
import { NETWORKS, type Hex, type Network } from '../../../gateway/config/networks.ts'
import { type Challenges, createChallenges, type Quote } from '../../../gateway/x402/challenge.ts'
import { catalogOf, OPERATION } from '../../support/operation.ts'
import { bodyOf, decode, entryOfV1 } from '../../support/quote.ts'

const baseUrl = 'https://shop.example'
const network = NETWORKS.base
const payTo: Hex = '0x00000000000000000000000000000000000000A1'
const required = new ServiceError('payment_required')

function challengesOf(operation: Operation, more: object = {}): Challenges {
  const catalog = catalogOf(operation)
  return createChallenges({ catalog, network, payTo, baseUrl, formats: [createExactEvm(network)], ...more })
}

function quoteOf(change: Partial<Operation> = {}, url?: string, error = required): Quote {
  const operation = { ...OPERATION, ...change }
  return challengesOf(operation).write(operation, url ?? baseUrl + operation.path, error)
}

const ANSWER = { size: 1, list: [1, 2] }

/** Which details of the operation a 402 includes. */
function detailsIn(quote: Quote): Record<'output' | 'words' | 'description', boolean> & { answer: string } {
  const { info, schema } = decode(quote).extensions.bazaar
  const { list } = info.output.example as typeof ANSWER
  return {
    answer: list.length > 1 ? 'whole' : list.length === 1 ? 'short' : 'outline',
    output: JSON.stringify(schema).includes('"size"'),
    words: JSON.stringify(schema).includes('How many'),
    description: decode(quote).resource.description.includes('Many words'),
  }
}

function messageOf(price: bigint, priceText: string): unknown {
  return quoteOf({ price, priceText }).v1['message']
}

describe('the requirements of an operation', () => {
  it('ask for its price in atomic units', () => {
    expect(createRequirements(OPERATION, createExactEvm(network), payTo)).to.deep.equal({
      scheme: 'exact',
      network,
      amount: 5000n,
      payTo,
      maxTimeoutSeconds: 300,
    })
    expect(() => createRequirements({ ...OPERATION, price: null }, createExactEvm(network), payTo)).to.throw('free')
  })
})

describe('the 402 of an operation', () => {
  it('is x402 v2 in the header and v1 in the body, and both ask for the same payment', () => {
    const quote = quoteOf()
    const [v2, v1] = [decode(quote), bodyOf(quote)]
    expect(v2).to.deep.equal(quote.v2)
    expect(quote.header).to.match(/^[A-Za-z0-9+/]+={0,2}$/)
    expect(quote.header.length % 4).to.equal(0)
    for (const object of [v2, v1]) expect(parsePaymentRequired(object).success).to.equal(true)
    expect(v2.accepts).to.deep.equal([
      {
        scheme: 'exact',
        network: 'eip155:8453',
        amount: '5000',
        asset: network.asset,
        payTo,
        maxTimeoutSeconds: 300,
        extra: { name: 'USD Coin', version: '2' },
      },
    ])
    expect(v1.accepts[0]).to.include({ network: 'base', maxAmountRequired: '5000', resource: v2.resource.url })
    expect(v1).to.include({ code: 'payment_required', retry: 'new_quote', docs: `${baseUrl}/docs` })
    expect(entryOfV1.parse(v1.accepts[0])).to.be.an('object')
  })

  it('writes amounts exactly', () => {
    for (const [price, text] of [
      [5000n, '5000'],
      [4_020_000n, '4020000'],
      [750_000_000n, '750000000'],
    ] as const) {
      const quote = quoteOf({ price })
      expect(decode(quote).accepts[0]).to.include({ amount: text })
      expect(bodyOf(quote).accepts[0]).to.include({ maxAmountRequired: text })
    }
  })

  it('is built once for the bare address, and names any other address that was called', () => {
    const { write } = challengesOf(OPERATION)
    const bare = baseUrl + OPERATION.path
    expect(write(OPERATION, bare, required)).to.equal(write(OPERATION, bare, new ServiceError('payment_required')))
    const url = `${baseUrl}/v1/things/nut/parts/9?limit=5&side=buy`
    const quote = write(OPERATION, url, required)
    const address = `${baseUrl}/v1/things/nut/parts/9`
    expect(decode(quote).resource.url).to.equal(address)
    expect(bodyOf(quote).accepts[0]).to.include({ resource: address })
    expect(decode(quote).extensions.bazaar.info.input['pathParams']).to.deep.equal({ id: 'nut', part: '9' })
  })

  it('is built once for each state of the data, though calls alternate between them', () => {
    const { write } = challengesOf(OPERATION)
    const fresh = { status: 'fresh', missing: [] } as const
    const stale = { status: 'stale', missing: ['newest'] } as const
    for (const url of [baseUrl + OPERATION.path, `${baseUrl}/v1/things/nut/parts/9`]) {
      const built = [fresh, stale].map((notice) => write(OPERATION, url, required, notice))
      expect(built.map((quote) => bodyOf(quote))).to.have.nested.property('[1].freshness.status', 'stale')
      for (const [at, notice] of [fresh, stale].entries())
        expect(write(OPERATION, url, required, notice)).to.equal(built[at])
    }
  })

  it('is kept for an address with path parameters, until what it says changes', () => {
    const { write } = challengesOf(OPERATION)
    const url = `${baseUrl}/v1/things/nut/parts/9`
    const quote = write(OPERATION, url, required)
    expect(write(OPERATION, `${url}?side=buy`, required)).to.equal(quote)
    const other = write(OPERATION, `${baseUrl}/v1/things/nut/parts/8`, required)
    expect(decode(other).resource.url).to.equal(`${baseUrl}/v1/things/nut/parts/8`)
    const stale = write(OPERATION, url, required, { status: 'stale', missing: ['newest'] })
    expect(bodyOf(stale)).to.have.nested.property('freshness.status', 'stale')
    expect(bodyOf(write(OPERATION, url, required))).not.to.have.property('freshness')
    const refused = write(OPERATION, url, new ServiceError('payment_invalid', 'The payer holds too little.'))
    expect(bodyOf(refused)).to.include({ code: 'payment_invalid' })
    expect(bodyOf(write(OPERATION, url, required))).to.include({ code: 'payment_required' })
  })

  it('is the same for calls of one address, also with a query and while the data are stale', () => {
    const { write, at } = challengesOf(OPERATION)
    const stale = { status: 'stale', missing: ['newest'] } as const
    const bare = baseUrl + OPERATION.path
    expect(at(OPERATION, bare)()).to.equal(write(OPERATION, bare, required))
    const url = `${baseUrl}/v1/things/nut/parts/9`
    const ofAddress = at(OPERATION, `${url}?side=buy`)
    for (const notice of [undefined, stale, undefined]) {
      const quote = ofAddress(notice)
      expect(quote).to.deep.equal(write(OPERATION, url, required, notice))
      expect(ofAddress(notice)).to.equal(quote)
    }
  })

  it('leaves out a network while nothing can be settled on it, also at an address that is called again', () => {
    const ready = new Set<string>(['base', 'base-sepolia'])
    const sepolia = NETWORKS['base-sepolia']
    const networks = [network, sepolia]
    const { write, at } = challengesOf(OPERATION, {
      others: [{ network: sepolia, payTo }],
      formats: networks.map(createExactEvm),
      isReady: ({ name }: Network) => ready.has(name),
    })
    for (const url of [baseUrl + OPERATION.path, `${baseUrl}/v1/things/nut/parts/9`]) {
      const ofAddress = at(OPERATION, url)
      const offered = (): string[][] =>
        [ofAddress(), write(OPERATION, url, required)].map((quote) => decode(quote).accepts.map((each) => each.network))
      const [both, one] = [networks.map(({ caip2 }) => caip2), [sepolia.caip2]]
      expect(offered()).to.deep.equal([both, both])
      ready.delete('base')
      expect(offered()).to.deep.equal([one, one])
      ready.clear()
      expect(offered()).to.deep.equal([both, both])
      ready.add('base').add('base-sepolia')
      expect(offered()).to.deep.equal([both, both])
    }
  })

  it('is written for each call of a long address, so that nobody fills the memory with them', () => {
    const { write } = challengesOf(OPERATION)
    const url = `${baseUrl}/v1/things/${'n'.repeat(400)}/parts/9`
    const quote = write(OPERATION, url, required)
    const again = write(OPERATION, url, required)
    expect(again).to.deep.equal(quote)
    expect(again).not.to.equal(quote)
  })

  it('names the media type of the answer in both versions', () => {
    const stream = quoteOf({ response: { type: 'string', contentMediaType: 'text/event-stream' } })
    for (const [quote, mimeType] of [
      [quoteOf({}), 'application/json'],
      [stream, 'text/event-stream'],
    ] as const) {
      expect(decode(quote).resource).to.include({ mimeType })
      expect(bodyOf(quote).accepts[0]).to.include({ mimeType })
    }
  })

  it('stays short enough for a header however long the query is', () => {
    const quote = quoteOf({}, `${baseUrl}/v1/things/nut/parts/9?filler=${'x'.repeat(9_000)}`)
    expect(decode(quote).resource.url).to.equal(`${baseUrl}/v1/things/nut/parts/9`)
    expect(quote.header.length).to.be.at.most(3_200)
  })

  it('gives the x402 reason of a refused payment and what the caller can do', () => {
    const error = new ServiceError('payment_invalid', 'The payer holds too little.', { reason: 'insufficient_funds' })
    const quote = quoteOf({}, undefined, error)
    expect(decode(quote).error).to.equal('insufficient_funds')
    expect(bodyOf(quote)).to.include({
      error: 'insufficient_funds',
      code: 'payment_invalid',
      message: 'The payer holds too little.',
    })
    const expired = quoteOf(
      {},
      undefined,
      new ServiceError('token_expired', undefined, { fields: { x402Version: 7, a: 1 } }),
    )
    expect(decode(expired).error).to.contain('token')
    expect(bodyOf(expired)).to.include({ code: 'token_expired', x402Version: 1, a: 1 })
  })

  it('tells buyers if a price is above the default limit of x402 clients', () => {
    expect(messageOf(100_000n, '0.1')).to.not.contain('limit')
    expect(messageOf(250_000n, '0.25')).to.contain('0.10 USDC in v1 clients)')
    expect(messageOf(50_000_000n, '50')).to.contain('1 USDC in v2 clients')
  })

  it('describes a dynamic path by a template that indexers accept', () => {
    const { routeTemplate } = decode(quoteOf()).extensions.bazaar
    expect(routeTemplate).to.equal('/v1/things/:id/parts/:part')
    expect(routeTemplate).to.match(/^\/[a-zA-Z0-9_/:.\-~%]+$/)
    expect(decode(quoteOf({ path: '/v1/thing', params: null })).extensions.bazaar).to.not.have.property('routeTemplate')
  })

  it('keeps service name and tags within the rules of indexers', () => {
    expect(decode(quoteOf()).resource).to.deep.include({
      serviceName: 'The Shop',
      tags: ['weather', 'a', 'b', 'c', 'd'],
    })
  })

  it('resolves references, and shows v1 indexers the fields of the request', () => {
    const quote = quoteOf({
      query: { type: 'object', properties: { side: { $ref: 'thing.json#/$defs/Side' } }, required: ['side'] },
      example: { request: { query: { side: 'buy' } } },
    })
    expect(JSON.stringify(quote.v2)).to.not.contain('$ref')
    const { outputSchema } = bodyOf(quote).accepts[0] as unknown as { outputSchema: { input: object } }
    expect(outputSchema.input).to.deep.include({
      type: 'http',
      method: 'GET',
      discoverable: true,
      queryParams: { side: { type: 'string', required: true, enum: ['buy', 'sell'] } },
    })
  })

  it('drops detail if the header would be too long: of the answer first, then words, then of the request', () => {
    const words = { description: 'Many words. '.repeat(40) }
    const asked = { params: null, path: '/v1/a', ...words }
    const detailsOf = (change: Partial<Operation>): unknown => detailsIn(quoteOf({ ...asked, ...change }))
    const whole = { answer: 'whole', output: true, words: true, description: true }
    expect(detailsOf({ example: { request: {}, response: ANSWER } })).to.deep.equal(whole)
    const long = { ...ANSWER, list: Array.from({ length: 300 }, (_, n) => n) }
    expect(detailsOf({ example: { request: {}, response: long } })).to.deep.equal({ ...whole, answer: 'short' })
    const deep = {
      ...ANSWER,
      list: [{ name: Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`n${n}`, n])) }],
    }
    expect(detailsOf({ example: { request: {}, response: deep } })).to.deep.equal({
      answer: 'outline',
      output: true,
      words: false,
      description: false,
    })
    const wide = { type: 'object', properties: { size: { type: 'number' }, ['y'.repeat(1_400)]: true } }
    expect(detailsOf({ example: { request: {}, response: deep }, response: wide })).to.include({ output: false })
  })

  it('cuts a description at 500 characters', () => {
    const { accepts } = bodyOf(quoteOf({ description: 'words and more '.repeat(100) }))
    expect(String(accepts[0]?.['description']).length).to.be.within(450, 500)
  })
})
