/** Tests that two gateways with one journal tell of each sale once, and that a restart loses none. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { openSchema } from '../contracts/postgres.ts'
import { buy } from '../support/agent.ts'
import { openGateway, type TestGateway, until } from '../support/gateway.ts'
import { type Receiver, SECRET, startReceiver } from '../support/webhook-receiver.ts'

for (const engine of ['SQLite', 'PostgreSQL'])
  describe(`the payment webhook of two gateways with one journal in ${engine}`, () => {
    let folder: string
    let schema: Awaited<ReturnType<typeof openSchema>> = null
    let receiver: Receiver
    const open: TestGateway[] = []

    before(async function () {
      if (engine === 'PostgreSQL' && (schema = await openSchema()) === null) this.skip()
      folder = mkdtempSync(join(tmpdir(), 'tollgate-webhooks-'))
      receiver = await startReceiver()
    })
    after(async () => {
      await Promise.all(open.splice(0).map((each) => each.close()))
      await receiver?.close()
      await schema?.drop()
      if (folder) rmSync(folder, { recursive: true, force: true })
    })

    async function openOne(): Promise<TestGateway> {
      const environment = {
        DATA_DIR: folder,
        PAYMENT_WEBHOOK_URL: receiver.url,
        WEBHOOK_SECRET: SECRET,
        ...(schema ? { DATABASE_URL: schema.url } : {}),
      }
      const gateway = await openGateway(environment, { inMemory: false })
      open.push(gateway)
      return gateway
    }

    it('tells of each sale once, and after a restart of those that the receiver did not accept', async () => {
      const sold = new Set<string>()
      const sell = async ({ url, wallet, settler }: TestGateway, word: string): Promise<void> => {
        expect((await buy(`${url}/v1/echo/${word}`, wallet)).status).to.equal(200)
        sold.add(String(settler.transfers.at(-1)?.transaction))
      }
      const told = (): readonly string[] =>
        receiver.received
          .filter(({ isAccepted }) => isAccepted)
          .map(({ body }) => (body['data'] as { transaction: string }).transaction)
      const [one, two] = [await openOne(), await openOne()]
      for (const gateway of [one, two]) await sell(gateway, 'up')
      await until(() => told().length === 2)
      receiver.answer(503)
      for (const gateway of [one, two]) await sell(gateway, 'down')
      await Promise.all(open.splice(0).map((each) => each.close()))
      receiver.answer(200)
      await sell(await openOne(), 'again')
      await until(() => new Set(told()).size === 5)
      expect(new Set(told())).to.deep.equal(sold)
      expect(told()).to.have.length(5)
      expect(receiver.received.every(({ isGenuine }) => isGenuine)).to.equal(true)
    })
  })
