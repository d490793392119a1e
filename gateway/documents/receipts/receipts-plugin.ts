/** The built-in plugin that verifies receipts, shows them to people, and tells a payer the state of a payment. */
import { findNetwork, type Network, type Hex } from '../../config/networks.ts'
import type { Journal, PaymentRecord } from '../../payments/journal/journal.ts'
import { claimedBy, readsClaim } from '../../products/claimed-request.ts'
import { paymentKey } from '../../methods/payment-method.ts'
import { assertAccess, claimOf } from '../../payments/replay-access.ts'
import type { WalletSignIn } from '../../payments/wallet-sign-in.ts'
import { type Call, definePlugin, NotFound, type Plugin, Reply } from '../../plugin/plugin.ts'
import { OFFER_TYPE, type Tokens } from '../../tokens/access-tokens.ts'
import { RECEIPT_TYPE, type ReceiptStatement } from './signed-receipts.ts'

export interface ReceiptParts {
  readonly tokens: Pick<Tokens, 'read'>
  /** The networks that payments are taken on. */
  readonly networks: readonly Network[]
  readonly now: () => Date
  /** Absent without a journal, in which payments are looked up. */
  readonly journal?: Pick<Journal, 'find' | 'list'>
  /** Checks the sign-in of a payer. */
  readonly signIn?: WalletSignIn
}

interface Verified {
  readonly valid: boolean
  readonly reason: string | null
  readonly receipt: Readonly<Record<string, unknown>> | null
  /** The offer, if the statement is one. */
  readonly offer: Readonly<Record<string, unknown>> | null
  /** The state of the payment today; null if it is unknown here. */
  readonly ledger: string | null
}

interface PaymentParams {
  readonly network: string
  readonly payer: Hex
  readonly nonce: Hex
}

interface PageQuery {
  readonly limit: number
  readonly cursor?: Hex
}

const EXPIRED = 'It is ours and unaltered, but it has expired: ask for a fresh quote.'

/** The plugin "receipts". */
export function createReceiptsPlugin({ tokens, networks, journal, signIn, now }: ReceiptParts): Plugin {
  /** `id` is a name or a CAIP-2 id. */
  async function find(id: string, payer: Hex, nonce: Hex): Promise<PaymentRecord | null> {
    const network = findNetwork(networks, id)
    return network && journal ? journal.find(paymentKey(network, payer, nonce)) : null
  }

  async function verify(jws: string): Promise<Verified> {
    const receipt = await tokens.read(RECEIPT_TYPE, jws)
    const offer = receipt ? null : await tokens.read(OFFER_TYPE, jws)
    if (offer) {
      const isExpired = Number(offer['validUntil']) <= now().getTime() / 1000
      return { valid: true, reason: isExpired ? EXPIRED : null, receipt: null, offer, ledger: null }
    }
    if (!receipt) {
      const reason = 'It was not signed by a key of this service, or it was altered.'
      return { valid: false, reason, receipt: null, offer: null, ledger: null }
    }
    const { payer, nonce, transaction, network: chain } = receipt as unknown as ReceiptStatement
    const record = await find(chain, payer as Hex, nonce as Hex)
    const isOurs = record?.transaction?.toLowerCase() === transaction.toLowerCase()
    return { valid: true, reason: null, receipt, offer: null, ledger: isOurs ? (record?.state ?? null) : null }
  }

  /**
   * Tells what became of a payment to its payer. Anybody can read payer, nonce and signature from the chain, so the caller
   * has to prove the purchase as for its answer. Without a proof it makes no difference whether the payment exists.
   */
  async function getPayment(call: Call<{ params: PaymentParams; query: object; body: unknown }>) {
    const { network, payer, nonce } = call.input.params
    const record = await find(network, payer, nonce)
    const isPlan = record !== null && (call.catalog.operations.get(record.operation)?.plan ?? null) !== null
    const claim = claimOf(claimedBy(call) ?? { client: null })
    await assertAccess({ claim, isPlan, signIn, now }, record ?? { payer, ...NOTHING_BOUGHT })
    if (!record) throw new NotFound('This wallet has made no such payment here.')
    const body = paymentOf(record)
    return new Reply(body, { headers: { 'cache-control': 'private, no-store' } })
  }

  /**
   * Lists the payments of a wallet, for whoever signs in with it. Of a wallet without any, no chain is asked about its
   * signature. Without a proof it makes no difference whether it has paid.
   */
  async function listPayments(call: Call<{ params: Omit<PaymentParams, 'nonce'>; query: PageQuery; body: unknown }>) {
    const { params, query } = call.input
    const { payer } = params
    const network = findNetwork(networks, params.network)
    const listed = async (limit: number, before?: Hex): Promise<readonly PaymentRecord[]> => {
      if (!network || !journal) return []
      const page = before === undefined ? {} : { before: paymentKey(network, payer, before) }
      return journal.list({ payer, network: network.caip2, withoutAnswers: true, limit, ...page })
    }
    const [newest] = await listed(1)
    const claim = claimOf(claimedBy(call) ?? { client: null })
    const bought = { ...NOTHING_BOUGHT, payer, network: newest?.network ?? null }
    await assertAccess({ claim, isPlan: true, signIn, now }, bought)
    const found = await listed(query.limit + 1, query.cursor)
    const payments = found.slice(0, query.limit)
    const body = {
      // The answers are not read for a list.
      payments: payments.map((record) => ({ ...paymentOf(record), answer_kept: undefined })),
      next_cursor: found.length > query.limit ? (payments.at(-1)?.identity ?? null) : null,
    }
    return new Reply(body, { headers: { 'cache-control': 'private, no-store' } })
  }

  return definePlugin({
    name: 'receipts',
    setup: () => ({
      handlers: {
        verifyReceipt: ({ input }: Call<{ params: object; query: object; body: { receipt: string } }>) =>
          verify(input.body.receipt),
        showReceipt: ({ input }: Call<{ params: object; query: { jws: string }; body: unknown }>) =>
          input.query.jws === ''
            ? { asked: false }
            : verify(input.query.jws).then((found) => ({ asked: true, ...found })),
        getPayment: readsClaim(getPayment),
        listPayments: readsClaim(listPayments),
      },
    }),
  })
}

const NOTHING_BOUGHT = { network: null, identifier: null, place: null, deliveredAt: null } as const

const iso = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString())

function paymentOf(record: PaymentRecord) {
  const { state, network, asset, payer, payTo, amount, identity, transaction, route, reason } = record
  return {
    state,
    network,
    asset,
    payer,
    pay_to: payTo,
    amount: String(amount),
    nonce: identity,
    route,
    transaction,
    /** Why it was released, reversed or is owed. */
    reason: state === 'released' || state === 'owed' || state === 'reversed' ? reason : null,
    valid_before: iso(Number(record.expiresAt) * 1000),
    created_at: iso(record.createdAt),
    updated_at: iso(record.updatedAt),
    settled_at: iso(record.settledAt),
    delivered_at: iso(record.deliveredAt),
    answer_kept: record.answer !== null,
  }
}
