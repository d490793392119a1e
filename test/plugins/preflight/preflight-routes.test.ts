import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { expect } from 'chai'
import { verifyMessage } from 'viem'
import { canonicalize } from '../../../plugins/preflight/canonical-json.ts'
import type { Preflight, PreflightSigner } from '../../../schemas/types.d.ts'
import { proves } from '../../requirements.ts'
import { ask, buy, json, offer, payment, receipt, send } from '../../support/agent.ts'
import { compiled } from '../../support/compiled.ts'
import { openGateway, type TestGateway } from '../../support/gateway.ts'

const root = resolve(import.meta.dirname, '../../..')
const ORDER = { symbol: 'ETH-USD', side: 'sell', notional_usd: 50_000, client_ref: 'order-7' }
const DAY = 86_400_000

describe('POST /v1/trade/preflight', () => {
  const folder = mkdtempSync(join(tmpdir(), 'preflight-'))
  let gateway: TestGateway
  let url: string
  before(async () => {
    for (const name of ['service', 'market', 'regime', 'cost', 'preflight'])
      cpSync(join(root, `catalog/${name}.json`), join(folder, `${name}.json`))
    cpSync(join(root, 'catalog/x/perp-funding-rates.json'), join(folder, 'x/perp-funding-rates.json'))
    gateway = await openGateway({ CATALOG_DIR: folder, PLUGIN_DIRS: join(root, 'plugins') })
    url = `${gateway.url}/v1/trade/preflight`
  })
  after(async () => {
    await gateway.close()
    rmSync(folder, { recursive: true })
  })

  const buyPreflight = async (body: object): Promise<Preflight> => {
    const response = await buy(url, gateway.wallet, 2, { method: 'POST', body })
    expect(response.status).to.equal(200)
    return (await response.json()) as Preflight
  }
  const getFree = async <Body>(path: string): Promise<Body> => (await (await ask(`${url}${path}`)).json()) as Body
  const isSignatureValid = ({ signature, ...answer }: Preflight): Promise<boolean> =>
    verifyMessage({ address: signature.signer, message: canonicalize(answer), signature: signature.value })

  it('costs 0.01 and answers a public client with a signed decision', async () => {
    proves('preflight')
    const { response, v1 } = await offer(url, { method: 'POST', body: ORDER })
    expect(response.status).to.equal(402)
    expect(v1.accepts[0]).to.include({ maxAmountRequired: '10000' })
    const client = new x402Client().register('eip155:84532', new ExactEvmScheme(gateway.wallet))
    const headers = { 'content-type': 'application/json' }
    const request = { method: 'POST', headers, body: JSON.stringify(ORDER) }
    const paid = await wrapFetchWithPayment(fetch, client)(url, request)
    expect(paid.status).to.equal(200)
    expect(receipt(paid)).to.include({ success: true })
    const preflight = (await paid.json()) as Preflight
    expect(preflight.decision).to.be.oneOf(['allow', 'reduce'])
    expect(preflight.request).to.deep.equal({ ...ORDER, order_type: 'market', max_cost_bps: 25, max_position_pct: 10 })
    expect(preflight.cost).to.include({ symbol: 'ETH-USD', notional_usd: 50_000 })
    expect(Date.parse(preflight.expires_at) - Date.parse(preflight.issued_at)).to.equal(60_000)
    expect(preflight).to.not.have.property('demo')
    const { address } = await getFree<PreflightSigner>('/signer')
    expect(preflight.signature).to.include({ scheme: 'eip191', canonical: 'RFC8785', signer: address })
    expect(await isSignatureValid(preflight)).to.equal(true)
  })

  it('signs the whole answer, so that any change breaks the signature', async () => {
    const preflight = await buyPreflight(ORDER)
    const forged: Preflight[] = [
      { ...preflight, decision: 'allow', recommended_notional_usd: 1e9 },
      { ...preflight, request: { ...preflight.request, side: 'buy' } },
      { ...preflight, expires_at: '2099-01-01T00:00:00.000Z' },
      { ...preflight, cost: { ...preflight.cost, total_bps: 0 } },
      { ...preflight, demo: true },
    ]
    for (const forgery of forged) expect(await isSignatureValid(forgery)).to.equal(false)
  })

  it('has an example whose signature verifies', async () => {
    const { operations } = JSON.parse(readFileSync(join(root, 'catalog/preflight.json'), 'utf8')) as {
      operations: { preflightTrade: { example: { response: Preflight } } }
    }
    expect(await isSignatureValid(operations.preflightTrade.example.response)).to.equal(true)
  })

  it('denies an order beyond the caller’s own limits, at the same price', async () => {
    const preflight = await buyPreflight({ ...ORDER, max_cost_bps: 1, account_equity_usd: 100_000, limit_price: 1 })
    expect(preflight).to.include({ decision: 'deny', recommended_notional_usd: 0 })
    const failed = preflight.checks.filter(({ status }) => status === 'fail').map(({ check }) => check)
    expect(failed).to.deep.equal(['cost', 'size_vs_equity', 'limit_distance'])
    expect(await isSignatureValid(preflight)).to.equal(true)
  })

  it('reduces an order that is only too large, and allows the size it recommends', async () => {
    const tight = { ...ORDER, symbol: 'BTC-USD', notional_usd: 5_000_000, max_cost_bps: 12 }
    const { decision, recommended_notional_usd: recommended, cost } = await buyPreflight(tight)
    expect(decision).to.equal('reduce')
    expect(recommended).to.be.within(1000, cost.largest_within_bps!.p90_notional_usd)
    const again = await buyPreflight({ ...tight, notional_usd: recommended / 2 })
    expect(again.checks[1]).to.include({ check: 'cost', status: 'pass' })
  })

  it('takes a limit order that crosses the book for a market order', async () => {
    const { cost } = await buyPreflight({ ...ORDER, order_type: 'limit', side: 'buy' })
    const crossing = await buyPreflight({
      ...ORDER,
      order_type: 'limit',
      side: 'buy',
      limit_price: cost.inputs.price! * 1.01,
    })
    expect(crossing.cost.warnings).to.include('marketable_limit')
    expect(crossing.cost.components.fee_bps).to.be.greaterThan(cost.components.fee_bps)
  })

  it('does not check the regime for an equity', async () => {
    const { regime, checks } = await buyPreflight({ ...ORDER, symbol: 'AAPL' })
    expect(regime).to.equal(null)
    expect(checks[0]).to.include({ check: 'regime', status: 'not_checked' })
  })

  it('checks the funding rate of a perpetual', async () => {
    const { cost, checks } = await buyPreflight({ ...ORDER, symbol: 'BTC-PERP' })
    expect(cost.symbol).to.equal('BTC-USD-PERP')
    expect(cost.components.fee_bps).to.equal(5)
    expect(checks[7]).to.include({ check: 'funding', limit: 5 })
    expect(checks[7]?.status).to.be.oneOf(['pass', 'warn'])
    expect(checks[7]?.detail).to.match(/the median of \d+ venues/)
  })

  it('contains the cost of a perpetual in its own order book', async () => {
    const { cost } = await buyPreflight({ ...ORDER, symbol: 'BTC-PERP', side: 'buy', notional_usd: 5000 })
    const { book, price } = cost.inputs
    expect(book?.instrument).to.match(/BTC/)
    expect(book?.venue).to.be.oneOf(['binance', 'bybit', 'okx', 'hyperliquid', 'dydx', 'kraken', 'gate', 'bitmex'])
    expect(Date.parse(cost.as_of) - Date.parse(book!.as_of)).to.be.within(0, 300_000)
    expect(book).to.not.have.property('levels')
    expect(price).to.be.greaterThan(0)
    expect(cost).to.deep.include({ confidence: 'high', warnings: [] })
  })

  it('answers 404 and 422 without charging', async () => {
    const header = await payment(url, gateway.wallet, 2, { method: 'POST' })
    const attempt = async (body: object): Promise<Response> => send(url, header, 2, { method: 'POST', body })
    expect((await attempt({ ...ORDER, symbol: 'NOPE' })).status).to.equal(404)
    const invalid = await attempt({ ...ORDER, max_cost_bps: -1 })
    expect(invalid.status).to.equal(422)
    expect(((await json(invalid))['detail'] as { loc: unknown }[])[0]?.loc).to.deep.equal(['body', 'max_cost_bps'])
    // Half of a character has no UTF-8 form, so no answer that contains it can be signed.
    const unsigned = await attempt({ ...ORDER, client_ref: 'order-\ud83d' })
    expect(unsigned.status).to.equal(422)
    expect(((await json(unsigned))['detail'] as { loc: unknown }[])[0]?.loc).to.deep.equal(['body', 'client_ref'])
    expect((await attempt(ORDER)).status).to.equal(200)
  })

  it('gives a free demo that is signed, marked and a day old', async () => {
    const demo = await getFree<Preflight>('/demo')
    expect(demo).to.include({ demo: true })
    expect(await isSignatureValid(demo)).to.equal(true)
    expect(gateway.now().getTime() - Date.parse(demo.expires_at)).to.be.greaterThan(DAY - 61_000)
    expect(gateway.now().getTime() - Date.parse(demo.cost.as_of)).to.be.at.least(DAY - 1000)
    const { demo: _, ...unmarked } = demo
    expect(await isSignatureValid(unmarked)).to.equal(false)
  })

  it('gives answers that the ten-line script verifies', async () => {
    const run = promisify(execFile)
    const program = await compiled('test/lab/verify-preflight.ts')
    const script = (...more: string[]) => run(process.execPath, [program, gateway.url, ...more])
    const preflight = await buyPreflight(ORDER)
    const files = { good: preflight, forged: { ...preflight, recommended_notional_usd: 1e9 } }
    const [good, forged] = await Promise.all(
      Object.entries(files).map(([name, answer]) => {
        const file = join(folder, `${name}.txt`)
        writeFileSync(file, JSON.stringify(answer, null, 2))
        return script(file).catch((error: unknown) => error as { code: number; stdout: string })
      }),
    )
    expect(good?.stdout).to.equal(`valid: ${preflight.decision}, signed by ${preflight.signature.signer}\n`)
    expect(forged).to.include({ code: 1 })
    expect(forged?.stdout).to.match(/^NOT VALID: /)
  })

  it('shows the ten lines of that script in its documentation', () => {
    const script = readFileSync(join(root, 'test/lab/verify-preflight.ts'), 'utf8')
    const lines = script.slice(script.indexOf('const canonical'), script.indexOf('\n\nprocess.stdout'))
    expect(lines.split('\n')).to.have.length(10)
    expect(readFileSync(join(root, 'docs/preflight.md'), 'utf8')).to.contain(lines)
  })
})
