import { expect } from 'chai'
import { takeTrial } from '../../../gateway/calls/trials.ts'
import type { CallRequest } from '../../../gateway/calls/request-and-answer.ts'
import { createLog } from '../../../gateway/observe/log.ts'
import { UnpaidCalls } from '../../../gateway/payments/unpaid-calls.ts'
import { AnswerBody } from '../../../gateway/plugin/answer-body.ts'
import { createCallCounts } from '../../../gateway/stores/call-counts.ts'
import { openDatabase } from '../../../gateway/stores/database.ts'
import { ask, offer, payment, send } from '../../support/agent.ts'
import { newWallet } from '../../support/gateway.ts'
import {
  type LimitedShop,
  openLimitedShop,
  SHARED_STORES,
  signedChallenge,
  signInHeader,
} from '../../support/limited-shop.ts'
import { OPERATION } from '../../support/operation.ts'

const BY_WALLET = { calls: 3, per: 'day', by: 'wallet' }
const BY_ADDRESS = { calls: 3, per: 'day', by: 'ip' }
const from = (address: string) => ({ headers: { 'x-forwarded-for': address } })

for (const stores of SHARED_STORES)
  describe(`trial calls at two processes that share ${stores}`, function () {
    this.timeout(60_000)
    let shop: LimitedShop
    before(async function () {
      const opened = await openLimitedShop(stores, {
        getEcho: { trial: BY_WALLET },
        postEcho: { trial: BY_ADDRESS },
        getLate: { trial: BY_ADDRESS },
      })
      if (!opened) return this.skip()
      shop = opened
    })
    after(() => shop?.close())

    it('are offered to a wallet that signs in, in a 402 that a buyer can pay as always', async () => {
      const { response, v1, v2 } = await offer(shop.at(0, '/v1/echo/hello'))
      expect(response.status).to.equal(402)
      expect(v1).to.deep.include({ code: 'payment_required', trial: BY_WALLET })
      expect(v2).to.have.nested.property('extensions.sign-in-with-x.info.nonce')
      expect(response.headers.get('payment-required')?.length).to.be.at.most(3_200)
      expect((await shop.pay(0, '/v1/echo/hello', newWallet())).status).to.equal(200)
    })

    it('are as many as the catalog says, whichever process gets them, and then the wallet pays', async () => {
      const wallet = newWallet()
      const before = shop.transfers()
      const answers = await Promise.all(
        Array.from({ length: 8 }, async (_, nth) => {
          const url = shop.at(nth, '/v1/echo/hello')
          return ask(url, { headers: await signInHeader(url, wallet) })
        }),
      )
      const statuses = answers.map(({ status }) => status)
      expect(statuses).to.have.members([200, 200, 200, 402, 402, 402, 402, 402])
      const given = answers.filter(({ status }) => status === 200)
      expect(given.map(({ headers }) => headers.get('trial-calls-left'))).to.have.members(['0', '1', '2'])
      const renewsAt = given[0]?.headers.get('trial-renews-at') ?? ''
      expect(renewsAt).to.match(/T00:00:00\.000Z$/)
      const refused = answers.find(({ status }) => status === 402) as Response
      const body = (await refused.json()) as { trial: object; message: string }
      expect(body.trial).to.deep.equal({ ...BY_WALLET, left: 0, renews_at: renewsAt })
      expect(shop.transfers()).to.equal(before)
      expect((await shop.pay(1, '/v1/echo/hello', wallet)).status).to.equal(200)
      expect(shop.transfers()).to.equal(before + 1)
    })

    it('need a sign-in that is the caller’s, and each counts once', async () => {
      const url = shop.at(0, '/v1/echo/hello')
      const header = await signInHeader(url, newWallet())
      expect((await ask(url, { headers: header })).status).to.equal(200)
      const again = await offer(shop.at(1, '/v1/echo/hello'), { headers: header })
      expect(again.response.status).to.equal(402)
      expect(again.v1.error).to.equal('invalid_siwx_nonce')
      // The new challenge can be signed at once.
      const signed = await signedChallenge(again, newWallet())
      expect((await ask(url, { headers: signed })).status).to.equal(200)
      expect((await offer(url, { headers: { 'sign-in-with-x': 'bm9uc2Vuc2U=' } })).response.status).to.equal(402)
    })

    it('count for an address, and for the /64 of an IPv6 address', async () => {
      for (const [own, other] of [
        [['203.0.113.7', '203.0.113.7', '203.0.113.7'], '203.0.113.8'],
        [['2001:db8:1:2::1', '2001:db8:1:2:ffff::2', '2001:db8:1:2::3'], '2001:db8:1:3::1'],
      ] as const) {
        for (const [nth, address] of own.entries())
          expect((await ask(shop.at(nth, '/v1/late'), from(address))).status).to.equal(200)
        const refused = await ask(shop.at(1, '/v1/late'), from(own[0]))
        expect(refused.status).to.equal(402)
        expect(refused.headers.get('trial-calls-left')).to.equal('0')
        expect((await ask(shop.at(0, '/v1/late'), from(other))).status).to.equal(200)
      }
    })

    it('are not used up by what was not answered', async () => {
      const caller = from('203.0.113.20')
      const post = (body: unknown, nth = 0) => ask(shop.at(nth, '/v1/echo'), { method: 'POST', body, ...caller })
      for (const [fault, status] of [
        ['throw', 502],
        ['missing', 404],
        ['teapot', 418],
        ['empty', 502],
      ] as const)
        for (const nth of [0, 1]) expect((await post({ text: 'a', fault }, nth)).status, fault).to.equal(status)
      for (const nth of [0, 1]) expect((await post({ wrong: true }, nth)).status).to.equal(422)
      for (const nth of [0, 1, 2]) expect((await post({ text: 'a' }, nth)).status).to.equal(200)
      expect((await post({ text: 'a' })).status).to.equal(402)
    })

    it('are not used up by a question about the price', async () => {
      const caller = from('203.0.113.30')
      for (const _ of [1, 2, 3, 4])
        expect((await ask(shop.at(0, '/v1/late'), { method: 'HEAD', ...caller })).status).to.equal(402)
      const answered = await ask(shop.at(0, '/v1/late'), caller)
      expect(answered.headers.get('trial-calls-left')).to.equal('2')
    })

    it('are offered beside payments: a payment that came is charged as always', async () => {
      const url = shop.at(0, '/v1/late')
      const caller = from('203.0.113.60')
      for (const nth of [0, 1, 2]) await ask(shop.at(nth, '/v1/late'), caller)
      const header = await payment(url, newWallet(), 2, caller, shop.now())
      const before = shop.transfers()
      expect((await send(url, header, 2, caller)).status).to.equal(200)
      expect(shop.transfers()).to.equal(before + 1)
    })

    it('renew with the next day', async () => {
      const caller = from('203.0.113.40')
      for (const nth of [0, 1, 2]) await ask(shop.at(nth, '/v1/late'), caller)
      expect((await ask(shop.at(0, '/v1/late'), caller)).status).to.equal(402)
      for (const { advance } of shop.processes) advance(86_400)
      expect((await ask(shop.at(1, '/v1/late'), caller)).status).to.equal(200)
    })
  })

describe('a trial call whose caller leaves before it is answered', () => {
  it('is given back ten times, and then counts', async () => {
    const db = openDatabase({ file: ':memory:' })
    const now = (): Date => new Date('2026-11-30T12:00:00Z')
    const parts = {
      payments: { unpaidCalls: new UnpaidCalls({ now }) },
      counts: createCallCounts(db, now),
      log: createLog('silent'),
    }
    const operation = { ...OPERATION, trial: { calls: 3, per: 'day', by: 'ip' } as const }
    const answer = { status: 200, headers: {}, body: AnswerBody.of('{}') }
    const leave = async (): Promise<void> => {
      const caller = { hasLeft: true, onLeave: () => () => {} }
      const request = { id: '1', callerPlace: '203.0.113.50', caller } as unknown as CallRequest
      await (await takeTrial(parts, operation, request)).answered(answer)
    }
    for (let calls = 0; calls < 13; calls++) await leave()
    const refused = await leave().catch((error: unknown) => error)
    expect(refused).to.include({ code: 'payment_required' })
    await db.destroy()
  })
})
