/**
 * Buyers who follow the rules and trust the answers. After a lost connection or a pending settlement they repeat the same
 * payment. They sign a new one only after the gateway said that nothing was charged. A buyer who is charged twice under
 * these rules was charged twice by the gateway. A purchase without an identifier is made from one address, one with an
 * identifier from a different address each time.
 */
import { callerOf } from '../../../gateway/workers/timeout.ts'
import type { Answer, CallRequest } from '../../../gateway/calls/request-and-answer.ts'
import type { Gateway } from './world.ts'
import type { Payment, World } from './world.ts'

/**
 * How a buyer understands an answer. `uncharged`: the gateway said that it took no money. `refused`: the buyer has to prove
 * that the purchase is his.
 */
export type Verdict = 'delivered' | 'uncharged' | 'pending' | 'conflict' | 'spent' | 'refused' | 'lost'

export interface Call {
  readonly gateway: Gateway
  readonly hangUp: AbortController
  verdict: Verdict | null
}

export interface Bought {
  readonly payment: Payment
  readonly calls: Call[]
  /** Verdict of the call that ended last. */
  last: Verdict | null
  /** True if the buyer never presents the payment again, because the gateway said that it took no money. */
  abandoned: boolean
  /** The answer that the payment bought last. */
  body: string | null
  /** Every answer that it bought, with the word of the request. */
  readonly answers: Map<string, string>
  /** The words of all requests that carried the payment. It is bound to the first one that was accepted. */
  readonly words: Set<string>
}

export interface Purchase {
  readonly payer: number
  readonly word: string
  /** True if the route delivers before the payment is final. */
  readonly fast: boolean
  readonly identifier: string | null
  readonly payments: Bought[]
}

export interface Buyers {
  readonly purchases: Purchase[]
  /** Starts a new purchase, or takes the next step of one. */
  act(pick: number): void
  /** Sends a payment again, for the same word or another one. */
  present(purchase: Purchase, bought: Bought, gateway: Gateway, word?: string): Call
  /** Ends the calls of a process that died. */
  lose(id: string): void
  calls(): readonly Call[]
}

const PURCHASES = 4

export function createBuyers(
  world: () => World,
  onAnswer: (bought: Bought, answer: Answer, word: string) => void,
): Buyers {
  const purchases: Purchase[] = []
  const ready = (): readonly Gateway[] => world().gateways.filter(({ dead, open }) => !dead && open)

  function end(call: Call, bought: Bought, verdict: Verdict): void {
    if (call.verdict !== null) return
    world().steps.history.push(`buyer of ${bought.payment.key.slice(-4)}: ${verdict}`)
    call.verdict = verdict
    if (verdict !== 'conflict') bought.last = verdict
  }

  function sign(purchase: Purchase): Bought {
    const bought: Bought = {
      payment: world().sign(purchase.payer),
      calls: [],
      last: null,
      abandoned: false,
      body: null,
      answers: new Map(),
      words: new Set(),
    }
    purchase.payments.push(bought)
    return bought
  }

  function present(purchase: Purchase, bought: Bought, gateway: Gateway, word = purchase.word): Call {
    const call: Call = { gateway, hangUp: new AbortController(), verdict: null }
    bought.calls.push(call)
    bought.words.add(word)
    world().steps.history.push(`buyer presents ${bought.payment.key.slice(-4)} for ${word} to ${gateway.id}`)
    let confirmSent = (): void => {}
    const request: CallRequest = {
      id: `call-${bought.calls.length}`,
      transport: 'http',
      url: `https://gate.test/v1/${purchase.fast ? 'fast' : 'word'}?word=${word}`,
      credential: { payments: [bought.payment.payload], token: null },
      bodyBytes: 0,
      client: purchase.identifier === null ? `address of ${purchase.word}` : `address ${bought.calls.length}`,
      caller: callerOf(call.hangUp.signal),
      onSent: (listener) => void (confirmSent = listener),
      read: async () => ({ params: {}, query: { word }, body: null }),
      ...(purchase.identifier === null ? {} : { idempotencyKey: purchase.identifier }),
    }
    void gateway.call(request).then((answer) => {
      if (gateway.dead || call.verdict !== null) return
      confirmSent()
      end(call, bought, verdictOf(answer))
      onAnswer(bought, answer, word)
    })
    return call
  }

  function act(pick: number): void {
    const gateways = ready()
    const gateway = gateways[pick % gateways.length]
    if (!gateway) return
    const chosen = purchases[pick % PURCHASES]
    if (!chosen) {
      const at = purchases.length
      const purchase: Purchase = {
        payer: at % 2,
        word: `word-${at}`,
        fast: pick % 2 === 1,
        identifier: pick % 3 === 0 ? `id-${at}` : null,
        payments: [],
      }
      purchases.push(purchase)
      present(purchase, sign(purchase), gateway)
      return
    }
    const bought = chosen.payments.at(-1) as Bought
    const isInProgress = bought.calls.some(({ verdict }) => verdict === null)
    const action = Math.floor(pick / PURCHASES) % 8
    if (action === 0) present(chosen, bought, gateway, 'another-word')
    else if (!isInProgress && bought.body === null && bought.last === 'uncharged' && action < 6) {
      bought.abandoned = true
      present(chosen, sign(chosen), gateway)
    } else if (action === 1 && chosen.identifier !== null && bought.body === null) {
      // An impatient agent signs a new payment with the same identifier before it hears about the first.
      present(chosen, sign(chosen), gateway)
    } else present(chosen, bought, gateway)
  }

  return {
    purchases,
    act,
    present,
    lose(id) {
      for (const bought of purchases.flatMap(({ payments }) => payments))
        for (const call of bought.calls) if (call.gateway.id === id) end(call, bought, 'lost')
    },
    calls: () => purchases.flatMap(({ payments }) => payments.flatMap(({ calls }) => calls)),
  }
}

function verdictOf({ status, receipt, error }: Answer): Verdict {
  if (status === 200 && receipt?.success) return 'delivered'
  if (error?.retry === 'same_payment' && error.code !== 'idempotency_conflict') return 'pending'
  if (error?.code === 'payment_conflict') return 'conflict'
  if (error?.code === 'payment_already_used' || error?.code === 'payment_owed') return 'spent'
  if (error?.code === 'sign_in_required') return 'refused'
  return 'uncharged'
}
