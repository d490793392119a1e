import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { expect } from 'chai'
import Papa from 'papaparse'
import { ask, buy, json, payment, send, type RequestOptions } from '../support/agent.ts'
import { openGateway, type TestGateway } from '../support/gateway.ts'

const TOKEN = 'correct-horse-battery'
const bearer = { authorization: `Bearer ${TOKEN}` }
/** The definition in schemas/operator.json that each address answers with. */
const SHAPES = {
  '': 'Money',
  '/ledger': 'Ledger',
  '/ledger/export?format=json': 'LedgerExport',
  '/payments': 'Payments',
  '/routes': 'Routes',
  '/products': 'Products',
  '/subscriptions': 'Subscriptions',
  '/reconciliation': 'Reconciliation',
  '/prices': 'PriceChanges',
  '/catalog': 'Catalog',
} as const

describe('the JSON of the operator console', () => {
  let shop: TestGateway
  let shapes: (name: string) => ValidateFunction
  const askConsole = (path: string, options: RequestOptions = {}) =>
    ask(`${shop.url}/operator${path}`, { ...options, headers: bearer })

  before(async () => {
    const file = resolve(import.meta.dirname, '../../schemas/operator.json')
    const ajv = new Ajv2020({ allErrors: true, strict: true, allowUnionTypes: true, strictRequired: false })
    formats.default(ajv)
    ajv.addSchema(JSON.parse(readFileSync(join(file), 'utf8')) as object)
    shapes = (name) => ajv.getSchema(`operator.json#/$defs/${name}`) as ValidateFunction
    shop = await openGateway({ OPERATOR_TOKEN: TOKEN })
    const { url, wallet, gateway } = shop
    // The ledger is asked for the current month, so the purchases must not fall into an earlier one.
    const inAMinute = new Date(shop.now().getTime() + 60_000)
    if (inAMinute.getUTCMonth() !== shop.now().getUTCMonth()) shop.advance(60)
    for (const word of ['a', 'b', 'c']) await buy(`${url}/v1/echo/${word}`, wallet)
    await buy(`${url}/v1/passes/late/1h`, wallet, 2, { method: 'POST' })
    await buy(`${url}/v1/echo`, wallet, 2, { method: 'POST', body: { text: 'a', fault: 'throw' } })
    const header = await payment(`${url}/v1/echo/d`, wallet)
    await send(`${url}/v1/echo/d`, header)
    await send(`${url}/v1/echo/e`, header)
    const [sold] = await gateway.journal.list({ states: ['settled'], operations: ['getEcho'], limit: 1 })
    await gateway.journal.owed(sold?.key ?? '', 1, 'the answer is lost')
  })
  after(() => shop.close())

  for (const [path, name] of Object.entries(SHAPES))
    it(`matches ${name} of schemas/operator.json at /operator${path}`, async () => {
      const validate = shapes(name)
      const body = await json(await askConsole(path))
      expect(validate(body), JSON.stringify(validate.errors)).to.equal(true)
      expect(validate({ ...body, more: 1 }), 'allows no other fields').to.equal(false)
    })

  it('shows the same revenue as the ledger of the month and its export', async () => {
    const money = (await json(await askConsole(''))) as {
      revenue: { total: { amount: string }; owed: { amount: string } }
    }
    const { totals, month } = (await json(await askConsole('/ledger'))) as {
      month: string
      totals: { kind: string; amount_atomic: string }[]
    }
    const total = (kind: string): bigint =>
      totals.filter((entry) => entry.kind === kind).reduce((sum, entry) => sum + BigInt(entry.amount_atomic), 0n)
    expect(total('sale') - total('debt')).to.equal(BigInt(money.revenue.total.amount))
    expect(total('debt')).to.equal(BigInt(money.revenue.owed.amount))
    const csv = await askConsole(`/ledger/export?month=${month}&format=csv`)
    expect(csv.headers.get('content-type')).to.equal('text/csv; charset=utf-8')
    expect(csv.headers.get('content-disposition')).to.equal(`attachment; filename="ledger-${month}.csv"`)
    const lines = Papa.parse<Record<string, string>>(await csv.text(), { header: true, skipEmptyLines: true }).data
    const { entries } = (await json(await askConsole(`/ledger/export?month=${month}&format=json`))) as {
      entries: object[]
    }
    expect(lines).to.deep.equal(entries)
    expect(shop.settler.transfers).to.have.length(lines.filter(({ kind }) => kind === 'sale').length)
  })

  it('refuses an invalid month or format, and a caller without the token', async () => {
    for (const query of ['?month=2026-13', '/export?month=x', '/export?format=xml'])
      expect((await askConsole(`/ledger${query}`)).status, query).to.equal(422)
    expect((await ask(`${shop.url}/operator/ledger/export`)).status).to.equal(401)
  })

  it('marks a debt as repaid once, by its settlement transaction, and refuses anything else', async () => {
    const { debts } = (await json(await askConsole('/ledger'))) as { debts: { transaction: string; payment: string }[] }
    const [debt] = debts
    const markRepaid = (fields: Record<string, string>) =>
      askConsole('/ledger/repaid', { method: 'POST', body: fields })
    const transaction = debt?.transaction ?? ''
    expect((await markRepaid({ transaction: `0x${'0'.repeat(64)}` })).status).to.equal(422)
    expect((await markRepaid({ transaction, by: 'not a hash' })).status).to.equal(422)
    const by = `0x${'5b'.repeat(32)}`
    expect(await json(await markRepaid({ transaction, by }))).to.deep.equal({ repaid: debt?.payment, note: by })
    expect((await markRepaid({ transaction, by })).status).to.equal(422)
    expect((await json(await askConsole('/ledger')))['debts']).to.deep.equal([])
  })
})
