import { expect } from 'chai'
import { openPaymentWebhook, type PaymentWebhook } from '../../../gateway/accounting/payment-webhook.ts'
import { createWebhook } from '../../../gateway/accounting/webhook.ts'
import { createLog } from '../../../gateway/observe/log.ts'
import type { EntryKind, EntryWindow, LedgerEntry } from '../../../gateway/payments/journal/journal.ts'
import { createLease } from '../../../gateway/stores/lease.ts'
import { DATABASES, type TestDatabase } from '../../contracts/databases.ts'
import { until } from '../../support/until.ts'
import { type Receiver, SECRET, startReceiver } from '../../support/webhook-receiver.ts'

const START = 1_770_000_000_000
const PAYER = `0x${'ab'.repeat(20)}` as const

for (const [name, create] of Object.entries(DATABASES))
  describe(`the payment webhook, in ${name}`, () => {
    let database: TestDatabase
    let receiver: Receiver
    let now: number
    let entries: LedgerEntry[]
    const opened: PaymentWebhook[] = []

    beforeEach(async function () {
      const made = await create()
      if (!made) return this.skip()
      database = made
      receiver = await startReceiver()
      now = START
      entries = []
    })
    afterEach(async () => {
      await Promise.all(opened.splice(0).map((each) => each.stop()))
      await receiver?.close()
      await database?.drop()
    })

    /** Opens it as a process with this name would. */
    async function open(process = 'one', db = database.db): Promise<PaymentWebhook> {
      const clock = (): Date => new Date(now)
      const webhook = await openPaymentWebhook({
        db,
        journal: { ledgerEntries },
        lease: createLease(db, process, clock),
        deliver: createWebhook({ url: receiver.url, secrets: [SECRET], now: clock }),
        service: 'https://shop.example',
        own: [],
        log: createLog('silent'),
        now: clock,
      })
      opened.push(webhook)
      return webhook
    }

    async function ledgerEntries({ from, before, after = { at: from, id: -1 }, limit }: EntryWindow) {
      const isLater = ({ at, id }: LedgerEntry): boolean => at > after.at || (at === after.at && id > after.id)
      return entries
        .filter((entry) => entry.at < before && isLater(entry))
        .sort((one, other) => one.at - other.at || one.id - other.id)
        .slice(0, limit)
    }

    function record(id: number, kind: EntryKind = 'sale', at = now): void {
      const payment = {
        key: `key-${id}`,
        network: 'eip155:8453',
        asset: PAYER,
        payer: PAYER,
        payTo: PAYER,
        amount: 5_000n,
        operation: 'getGold',
        route: 'GET /v1/gold',
        transaction: `0x${'cd'.repeat(32)}`,
        priceVersion: 'v',
        callId: `call-${id}`,
      } as LedgerEntry['payment']
      entries.push({ id, at, kind, note: null, payment })
    }

    const told = (): unknown[] => receiver.received.map(({ body }) => (body['data'] as { payment: string }).payment)

    it('tells of each entry of the ledger once, signed, with its id and time', async () => {
      const webhook = await open()
      record(1)
      await webhook.run()
      now += 1_500
      for (const [at, kind] of (['debt', 'repayment', 'reversal'] as const).entries()) record(at + 2, kind)
      await webhook.run()
      await webhook.run()
      const { received } = receiver
      expect(received.map(({ body }) => body['type'])).to.have.members([
        'payment.settled',
        'payment.owed',
        'payment.repaid',
        'payment.reversed',
      ])
      expect(received.every(({ isGenuine }) => isGenuine)).to.equal(true)
      expect(new Set(received.map(({ id }) => id)).size).to.equal(4)
      expect(received[0]).to.include({ timestamp: START / 1000 })
      expect(received[0]?.body).to.include({ timestamp: new Date(START).toISOString() })
      expect(received[0]?.body['data']).to.include({
        service: 'https://shop.example',
        payment: 'key-1',
        call: 'call-1',
        operation: 'getGold',
        amount: '0.005000',
        payer: PAYER,
      })
    })

    it('tells nothing of what was recorded before it was first opened', async () => {
      record(1, 'sale', START - 1_000)
      const webhook = await open()
      await webhook.run()
      expect(told()).to.deep.equal([])
    })

    it('tells of an entry that was seen after later ones', async () => {
      const webhook = await open()
      now += 300_000
      record(2)
      await webhook.run()
      record(1, 'sale', START + 1_000)
      now += 60_000
      await webhook.run()
      expect(told()).to.deep.equal(['key-2', 'key-1'])
    })

    it('tries again with the same id, a new time and longer and longer waits, until the message is accepted', async () => {
      const webhook = await open()
      record(1)
      receiver.answer(500)
      const tries: number[] = []
      for (let seconds = 0; seconds <= 40; seconds++, now += 1_000) {
        await webhook.run()
        if (receiver.received.length > tries.length) tries.push(seconds)
      }
      expect(tries).to.deep.equal([0, 5, 15, 35])
      receiver.answer(204)
      now += 40_000
      await webhook.run()
      now += 3_600_000
      await webhook.run()
      const { received } = receiver
      expect(received.map(({ timestamp }) => timestamp - START / 1000)).to.deep.equal([0, 5, 15, 35, 81])
      expect(new Set(received.map(({ id }) => id)).size).to.equal(1)
      expect(received.every(({ isGenuine }) => isGenuine)).to.equal(true)
    })

    it('keeps what the receiver was not there for, past a stop of the process', async () => {
      const before = await open()
      await receiver.down()
      record(1)
      await before.run()
      await before.stop()
      record(2)
      await receiver.up()
      const webhook = await open('its successor')
      now += 86_400_000
      record(3)
      await webhook.run()
      expect(told()).to.have.members(['key-1', 'key-2', 'key-3'])
    })

    it('sends nothing twice that was accepted, however long ago, and forgets it once a later one is told', async () => {
      const webhook = await open()
      record(1)
      await webhook.run()
      await webhook.stop()
      const runOnce = async (days: number): Promise<void> => {
        now = START + days * 86_400_000
        const process = await open(`day ${days}`)
        await process.run()
        await process.stop()
      }
      for (const days of [1, 2, 30]) await runOnce(days)
      expect(told()).to.deep.equal(['key-1'])
      record(2)
      await runOnce(30.1)
      await runOnce(31)
      expect(told()).to.deep.equal(['key-1', 'key-2'])
      const kept = await database.db<{ id: string }>('webhook_messages').select('id')
      expect(kept.map(({ id }) => id)).to.deep.equal([receiver.received[1]?.id])
    })

    it('sends no more after an answer of 410, until it is opened again', async () => {
      const webhook = await open()
      record(1)
      receiver.answer(410)
      await webhook.run()
      record(2)
      now += 3_600_000
      await webhook.run()
      expect(told()).to.deep.equal(['key-1'])
      await webhook.stop()
      receiver.answer(200)
      now += 60_000
      await (await open('later')).run()
      expect(told().slice(1)).to.have.members(['key-1', 'key-2'])
    })

    it('does not wait for a receiver that hangs when it stops, and sends the message again at once when it is back', async () => {
      const webhook = await open()
      record(1)
      receiver.answer(null)
      const run = webhook.run()
      await until(() => receiver.received.length === 1)
      await webhook.stop()
      await run
      receiver.answer(200)
      now += 30_000
      await (await open('its successor')).run()
      expect(told()).to.deep.equal(['key-1', 'key-1'])
    })

    it('sends many entries, each once, by one of two processes', async () => {
      const one = await open('one', database.db)
      const two = await open('two', database.open?.() ?? database.db)
      for (let id = 1; id <= 250; id++) record(id)
      await Promise.all([one.run(), two.run()])
      await Promise.all([one.run(), two.run()])
      expect(told()).to.have.length(250)
      expect(new Set(told()).size).to.equal(250)
    })
  })
