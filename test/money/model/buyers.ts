/**
 * Buyers who behave: they believe what they are told. After a lost connection or a pending settlement they repeat the
 * same payment; only where they were told that nothing was charged do they sign a new one. Whoever is charged twice
 * under these rules was charged twice by us. Each call comes from another place.
 */
import type { Answer, CallRequest } from '../../../gateway/calls/call.ts'
import type { Gateway } from './world.ts'
import type { Payment, World } from './world.ts'

/** What a buyer makes of an answer. `uncharged`: it said that this payment took no money. `withheld`: delivered before. */
export type Verdict = 'delivered' | 'uncharged' | 'pending' | 'conflict' | 'spent' | 'withheld' | 'lost'

export interface Call {
  readonly gateway: Gateway
  readonly hangUp: AbortController
  verdict: Verdict | null
}

export interface Bought {
  readonly payment: Payment
  readonly calls: Call[]
  /** What the last call that ended said. */
  last: Verdict | null
  /** Never presented again: the buyer was told that it took no money. */
  abandoned: boolean
  /** The answer it bought, and the request it was bought for. */
  body: string | null
  boughtFor: string | null
  /** Every request it was presented with. The first that came through is the one it is bound to. */
  readonly words: Set<string>
}

export interface Purchase {
  readonly payer: number
  readonly word: string
  /** Bought where the answer may leave before the payment is final. */
  readonly fast: boolean
  readonly identifier: string | null
  readonly payments: Bought[]
}

export interface Buyers {
  readonly purchases: Purchase[]
  /** A new purchase, or the next thing its buyer would do. */
  act(pick: number): void
  /** Sends a payment once more, for its own word or another. */
  present(purchase: Purchase, bought: Bought, gateway: Gateway, word?: string): Call
  /** The calls of a process that is no more. */
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
    world().steps.story.push(`buyer of ${bought.payment.key.slice(-4)}: ${verdict}`)
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
      boughtFor: null,
      words: new Set(),
    }
    purchase.payments.push(bought)
    return bought
  }

  function present(purchase: Purchase, bought: Bought, gateway: Gateway, word = purchase.word): Call {
    const call: Call = { gateway, hangUp: new AbortController(), verdict: null }
    bought.calls.push(call)
    bought.words.add(word)
    world().steps.story.push(`buyer presents ${bought.payment.key.slice(-4)} for ${word} to ${gateway.id}`)
    let hear = (): void => {}
    const request: CallRequest = {
      id: `call-${bought.calls.length}`,
      transport: 'http',
      url: `https://gate.test/v1/${purchase.fast ? 'fast' : 'word'}?word=${word}`,
      credential: { payments: [bought.payment.payload], token: null },
      client: `place ${bought.calls.length}`,
      signal: call.hangUp.signal,
      onSent: (listener) => void (hear = listener),
      read: async () => ({ params: {}, query: { word }, body: null }),
      ...(purchase.identifier === null ? {} : { idempotencyKey: purchase.identifier }),
    }
    void gateway.call(request).then((answer) => {
      if (gateway.dead || call.verdict !== null) return
      hear()
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
    const inFlight = bought.calls.some(({ verdict }) => verdict === null)
    const whim = Math.floor(pick / PURCHASES) % 8
    if (whim === 0) present(chosen, bought, gateway, 'another-word')
    else if (!inFlight && bought.body === null && bought.last === 'uncharged' && whim < 6) {
      bought.abandoned = true
      present(chosen, sign(chosen), gateway)
    } else if (whim === 1 && chosen.identifier !== null && bought.body === null) {
      // An impatient agent signs anew under the same name without waiting to hear of the first.
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
  if (error?.code === 'payment_already_used') return 'spent'
  if (error?.code === 'forbidden') return 'withheld'
  return 'uncharged'
}
