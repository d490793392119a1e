import { expect } from 'chai'
import type { Outcome } from '../../gateway/methods/payment-method.ts'
import { openSchema, type Schema } from '../contracts/postgres.ts'
import { json, payment, send } from '../support/agent.ts'
import { openGateway, type TestGateway, until } from '../support/gateway.ts'

const OURS = `0x${'0a'.repeat(32)}` as const
const THEIRS = `0x${'7e'.repeat(32)}` as const

for (const database of ['a SQLite file', 'PostgreSQL'] as const)
  describe(`an answer that left before its payment was final, in strict mode, with ${database}`, () => {
    let schema: Schema | null = null
    let shop: TestGateway

    before(async function () {
      if (database === 'PostgreSQL' && !(schema = await openSchema())) this.skip()
      shop = await openGateway(schema ? { DATABASE_URL: schema.url } : {}, { inMemory: false })
    })
    after(async () => {
      await shop?.close()
      await schema?.drop()
    })

    it('is not given again, and its amount is owed, if others moved the money after a reorganisation', async () => {
      const { settler, url } = shop
      let becomeFinal: (outcome: Outcome) => void = () => {}
      settler.settle = async (_payment, _requirements, { record }) => {
        await record({ kind: 'chain', transaction: OURS })
        const later = new Promise<Outcome>((resolve) => (becomeFinal = resolve))
        return { state: 'settled', transaction: OURS, provisional: true, later }
      }
      const header = await payment(`${url}/v1/echo/replaced`, shop.wallet)
      expect((await send(`${url}/v1/echo/replaced`, header)).status).to.equal(200)
      const sendAgain = async () => {
        const again = await send(`${url}/v1/echo/replaced`, header)
        return [again.status, (await json(again))['code']]
      }
      const { journal } = shop.gateway
      const { owed } = journal
      // The first of two writes settles the payment without its answer, and the second, this one, owes it.
      let between: unknown
      journal.owed = async (...args) => {
        between = await sendAgain()
        return await owed(...args)
      }
      becomeFinal({ state: 'settled', transaction: THEIRS, foreignSender: `0x${'d4'.repeat(20)}`, isOwed: true })
      await until(async () => (await journal.debts()).length > 0)
      expect(between).to.deep.equal([402, 'payment_owed'])
      expect(await sendAgain()).to.deep.equal([402, 'payment_owed'])
      expect((await journal.debts()).map(({ transaction }) => transaction)).to.deep.equal([THEIRS])
    })
  })
