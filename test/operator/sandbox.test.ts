import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { createGateway } from '../../gateway/compose.ts'
import { readConfig } from '../../gateway/config/config.ts'
import { ask, buy, json } from '../support/agent.ts'
import { freePort, openGateway } from '../support/gateway.ts'
import { openSandboxGateway, type SandboxGateway, SHOP } from '../support/sandbox.ts'

const TOKEN = 'correct-horse-battery'
const bearer = { authorization: `Bearer ${TOKEN}` }

describe('the operator console on the sandbox chain', () => {
  let shop: SandboxGateway

  before(async () => {
    shop = await openSandboxGateway({ ...SHOP, OPERATOR_TOKEN: TOKEN })
  })
  after(() => shop?.close())

  const post = async (path: string) =>
    json(await ask(`${shop.url}/operator${path}`, { method: 'POST', headers: bearer }))

  it('matches every sale with a transfer on the chain, and shows the same total', async () => {
    for (const word of ['a', 'b']) expect((await buy(`${shop.url}/v1/echo/${word}`, shop.buyer)).status).to.equal(200)
    const { comparison } = (await post('/reconciliation/run')) as { comparison: { buckets: object; unreadable: null } }
    expect(comparison.unreadable).to.equal(null)
    expect(comparison.buckets).to.deep.equal({
      matched: 2,
      pending: 0,
      missing: 0,
      amount_differs: 0,
      unknown: 0,
      unreadable: 0,
    })
    const { revenue } = (await json(await ask(`${shop.url}/operator`, { headers: bearer }))) as {
      revenue: { total: { amount: string } }
    }
    expect(BigInt(revenue.total.amount)).to.equal((await shop.moved()).payee)
    const metrics = await (await ask(`${shop.url}/metrics`, { headers: bearer })).text()
    expect(metrics).to.contain('tollgate_reconciled_rows{bucket="matched"} 2')
  })

  it('opens with a token that the sandbox keeps for its next start, unless OPERATOR_TOKEN is set', async () => {
    const { operatorToken } = shop.sandbox
    expect(operatorToken).to.match(/^[\w-]{24}$/)
    const own = { authorization: `Bearer ${operatorToken}` }
    expect((await ask(`${shop.url}/operator`, { headers: own })).status).to.equal(401)
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-sandbox-token-'))
    const place = { ...SHOP, DATA_DIR: folder, LOG_LEVEL: 'silent' }
    const tokens: string[] = []
    try {
      for (const _ of [1, 2]) {
        const gateway = await createGateway(readConfig({ ...place, PORT: String(await freePort()) }))
        const url = await gateway.listen()
        const token = gateway.settlement.sandbox?.operatorToken ?? ''
        tokens.push(token)
        expect((await ask(`${url}/operator`)).status).to.equal(401)
        expect((await ask(`${url}/operator`, { headers: { authorization: `Bearer ${token}` } })).status).to.equal(200)
        await gateway.close()
      }
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
    expect(new Set(tokens).size).to.equal(1)
    expect(tokens[0]).not.to.equal(operatorToken)
  })

  it('is not there on any other network without OPERATOR_TOKEN', async () => {
    const production = await openGateway()
    try {
      expect((await ask(`${production.url}/operator`)).status).to.equal(404)
    } finally {
      await production.close()
    }
  })

  it('checks the current files without affecting the running catalog', async () => {
    const before = shop.gateway.current
    const { check, version } = (await post('/catalog/check')) as { check: object; version: string }
    expect(check).to.deep.equal({ ok: true, version, mistakes: [], operations: before.catalog.operations.size })
    expect(shop.gateway.current).to.equal(before)
  })
})
