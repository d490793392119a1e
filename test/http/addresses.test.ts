import { isDeepStrictEqual } from 'node:util'
import { expect } from 'chai'
import { callerOf } from '../../gateway/workers/timeout.ts'
import { isConstant } from '../../gateway/plugin/immutable.ts'
import { type LiveGateway, openLiveGateway } from '../dynamic/live-gateway.ts'
import { SERVICE } from '../support/catalog.ts'
import { rawRequest, requestLine } from './raw.ts'

/** The forms in which callers ask for an answer. */
const FORMS: Readonly<Record<string, readonly string[]>> = {
  plain: [],
  compressed: ['Accept-Encoding: gzip, br'],
  page: ['Accept: text/html,application/xhtml+xml;q=0.9'],
  'compressed page': ['Accept: text/html', 'Accept-Encoding: gzip'],
  unchanged: ['If-None-Match: *'],
  'with a token': ['X-SERVICE-TOKEN: abc.def.ghi'],
  'with a payment': ['PAYMENT-SIGNATURE: e30='],
  'with a body': ['Content-Length: 2', 'Content-Type: application/json', '', '{}'],
}

describe('a request to an operation', function () {
  // A thousand calls, some of pages that take long to make.
  this.timeout(180_000)
  let shop: LiveGateway
  let port: number
  before(async () => {
    shop = await openLiveGateway({ own: true })
    port = Number(new URL(shop.url).port)
  })
  after(() => shop.close())

  /** Status, headers and body without what differs from call to call. */
  async function answerTo(target: string, form: string) {
    const { status, head, body } = await rawRequest(port, requestLine('GET', target, FORMS[form]))
    const [, ...named] = head.toLowerCase().split('\r\n')
    const same = named.filter((line) => !/^(date|x-call-id):/.test(line)).sort()
    return {
      status,
      headers: same,
      body: body.replace(/"call_id":"[^"]*"|<code>[0-9a-f-]{36}<\/code>/g, '"call_id":""'),
    }
  }

  it('gets the same answer again and again, in every form, and in absolute form', async () => {
    const operations = [...shop.gateway.current.catalog.operations.values()]
    const paths = operations
      .filter(({ method, path, internal }) => method === 'GET' && path !== '' && !internal && !path.includes('{'))
      .map(({ path }) => path)
    expect(paths).to.include.members(['/pricing.json', '/openapi.json', '/v1/x', '/pricing', '/', '/robots.txt'])
    const withParameters = [
      '/v1/potus/event/latest',
      '/v1/potus/event/{selector}',
      '/v1/potus/event/fr%3A2026-11-27?fields=all',
      '/docs/getRegimeCurrent',
      '/docs/nothing',
      '/report/unknown',
      '/v1/payments/base-sepolia/0x0000000000000000000000000000000000000001/0x00',
    ]
    let compared = 0
    for (const path of [...paths, ...withParameters])
      for (const form of Object.keys(FORMS)) {
        const absolute = await answerTo(`http://elsewhere.example${path}`, form)
        const answers = [await answerTo(path, form), await answerTo(path, form)]
        for (const { status, headers } of answers) {
          expect(status, `${path} ${form}`).to.equal(absolute.status)
          expect(headers.map(nameOf), `${path} ${form}`).to.deep.equal(absolute.headers.map(nameOf))
        }
        const differs = !isDeepStrictEqual(answers, [absolute, absolute])
        // A live answer, or the signed offer of a 402, may be renewed between two calls.
        if (differs && !isDeepStrictEqual(await answerTo(`http://elsewhere.example${path}`, form), absolute)) continue
        expect(answers, `${path} ${form}`).to.deep.equal([absolute, absolute])
        compared += 1
      }
    expect(compared).to.be.greaterThan(paths.length * 4)
  })

  it('gets pages that depend on the catalog alone from memory', async () => {
    const { bound, catalog } = shop.gateway.current
    for (const id of ['getPricing', 'getPricingPage', 'getDocs']) {
      const operation = bound.get(id)
      if (!operation) throw new Error(`${id} is not sold`)
      const input = operation.validate({ params: {}, query: {}, body: undefined })
      const caller = callerOf(new AbortController().signal)
      const call = {
        id: 'c1',
        operation: operation.operation,
        catalog,
        input,
        access: { kind: 'free' },
        caller,
      } as const
      const [first, second] = [
        await operation.handle({ ...call, asOf: new Date() }),
        await operation.handle({ ...call, asOf: new Date() }),
      ]
      expect(isConstant(first), id).to.equal(true)
      expect(second, id).to.equal(first)
    }
  })

  it('is validated like every other call, whatever was answered before', async () => {
    expect((await answerTo('/pricing', 'plain')).status).to.equal(200)
    const refused = await answerTo('/pricing?ok=yes', 'plain')
    expect(refused.status).to.equal(422)
    expect(JSON.parse(refused.body)).to.include({ code: 'validation_failed' })
    expect((await answerTo('/pricing', 'plain')).status).to.equal(200)
  })

  it('is the same answer with a query that the operation does not take', async () => {
    expect(await answerTo('/pricing.json?utm_source=letter', 'plain')).to.deep.equal(
      await answerTo('/pricing.json', 'plain'),
    )
  })

  it('gets the documents and pages of the current edition', async () => {
    expect((await answerTo('/pricing.json', 'plain')).body).to.not.contain('Shop of the second edition')
    await answerTo('/pricing', 'page')
    const original = shop.gateway.current.catalog.service
    shop.writeCatalog('service.json', { ...SERVICE, ...original, title: 'Shop of the second edition' })
    await shop.gateway.reload()
    const { etag } = Object.fromEntries(
      (await answerTo('/pricing.json', 'plain')).headers.map((line) => line.split(': ', 2)),
    ) as { etag?: string }
    expect(etag).to.contain(shop.gateway.current.catalog.version)
    expect((await answerTo('/pricing', 'page')).body).to.contain('Shop of the second edition')
  })
})

const nameOf = (line: string): string => line.slice(0, line.indexOf(':'))
