import { execFile } from 'node:child_process'
import { resolve } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { ask, json, payment, send } from '../../support/agent.ts'
import { newWallet, until } from '../../support/gateway.ts'
import { type LimitedShop, openLimitedShop, SHARED_STORES } from '../../support/limited-shop.ts'

const root = resolve(import.meta.dirname, '../../..')
const run = promisify(execFile)

for (const stores of SHARED_STORES)
  describe(`paused sales at two processes that share ${stores}`, function () {
    this.timeout(120_000)
    let shop: LimitedShop
    before(async function () {
      const opened = await openLimitedShop(stores, { getEcho: { trial: { calls: 3, per: 'day', by: 'ip' } } })
      if (!opened) return this.skip()
      shop = opened
    })
    after(() => shop?.close())

    /** Runs a command as an operator does, and returns what it prints. */
    async function command(...words: readonly string[]): Promise<string> {
      const arguments_ = ['--import', 'tsx/esm', 'scripts/program.ts', ...words]
      const env = { ...process.env, ...shop.environment, NETWORK: 'sandbox' }
      const { stdout } = await run(process.execPath, arguments_, { cwd: root, env })
      return stdout
    }
    const status = async (nth: number, path: string): Promise<number> => (await ask(shop.at(nth, path))).status
    /** Waits until both processes answer calls without payment so. */
    const untilBoth = (path: string, expected: number): Promise<void> =>
      until(async () => (await status(0, path)) === expected && (await status(1, path)) === expected)

    it('are not sold from the moment at which the command has ended, and nothing is charged', async () => {
      const wallet = newWallet()
      const bought = await payment(shop.at(0, '/v1/late'), wallet, 2, {}, shop.now())
      const unused = await payment(shop.at(0, '/v1/late'), wallet, 2, {}, shop.now())
      const named = { headers: { 'idempotency-key': 'paused-purchase-1' } }
      const answer = await send(shop.at(0, '/v1/late'), bought, 2, named)
      expect(answer.status).to.equal(200)
      const before = shop.transfers()
      expect(await command('pause', 'getLate', '--reason', 'The source is down.')).to.contain('getLate is paused')
      for (const nth of [0, 1]) {
        const refused = await send(shop.at(nth, '/v1/late'), unused)
        expect(refused.status).to.equal(503)
        expect(refused.headers.get('retry-after')).to.equal('60')
        const body = await json(refused)
        expect(body).to.include({ code: 'paused', retry: 'after_delay' })
        expect(body['message']).to.contain('nothing was charged').and.contain('The source is down.')
        // What was bought before goes back to its buyer.
        const again = await send(shop.at(nth, '/v1/late'), bought, 2, named)
        expect(again.status).to.equal(200)
        expect(again.headers.get('idempotent-replay')).to.equal('true')
      }
      await untilBoth('/v1/late', 503)
      expect(shop.transfers()).to.equal(before)
      expect(await command('pause')).to.match(/^getLate +since .* The source is down\.\n$/)
      expect(await command('resume', 'getLate')).to.equal('getLate is sold again.\n')
      await untilBoth('/v1/late', 402)
      expect((await send(shop.at(1, '/v1/late'), unused)).status).to.equal(200)
    })

    it('are in no document, and /health names them with the reason', async () => {
      const listed = async (nth: number): Promise<boolean> =>
        (await (await ask(shop.at(nth, '/.well-known/x402'))).text()).includes('/v1/late')
      expect(await listed(0)).to.equal(true)
      await command('pause', 'getLate')
      await untilBoth('/v1/late', 503)
      for (const nth of [0, 1]) expect(await listed(nth)).to.equal(false)
      const { products } = (await json(await ask(shop.at(1, '/health')))) as { products: { product: string }[] }
      expect(products.find(({ product }) => product === 'echo')).to.include({ status: 'paused', reason: 'getLate' })
      await command('resume', 'getLate')
      await untilBoth('/v1/late', 402)
      for (const nth of [0, 1]) expect(await listed(nth)).to.equal(true)
    })

    it('may be a whole product, with its trial calls and its free routes, and outlast a restart', async () => {
      await command('pause', 'echo')
      expect((await shop.pay(0, '/v1/late', newWallet()).catch(() => null))?.status ?? 503).to.equal(503)
      await untilBoth('/v1/runs', 503)
      await untilBoth('/v1/echo/hello', 503)
      const third = await shop.open()
      expect((await ask(`${third.url}/v1/late`)).status).to.equal(503)
      expect((await ask(`${third.url}/v1/runs`)).status).to.equal(503)
      await command('resume', 'echo')
      await untilBoth('/v1/runs', 200)
    })

    it('are refused for a name that nothing has', async () => {
      const failed = await command('pause', 'getLater').catch((error: unknown) => error as { stderr: string })
      expect((failed as { stderr: string }).stderr).to.contain('No product and no operation is called getLater.')
      const resumed = await command('resume', 'getLate').catch((error: unknown) => error as { stderr: string })
      expect((resumed as { stderr: string }).stderr).to.contain('getLate is not paused')
    })
  })
