/** How calls are paid for: payments, the recovery of open ones, and the watch over those that are not final. */
import type { Parts } from './parts.ts'
import { readableNetworks } from './settlement.ts'
import { recipientsOf } from '../config/pay-to.ts'
import { SAFE_BLOCKS } from '../config/settlement.ts'
import { createErc1271Check } from '../methods/exact-evm/erc1271.ts'
import { createExactEvm } from '../methods/exact-evm/exact-evm.ts'
import { createQuotes } from '../calls/quotes.ts'
import { NodeCallBudget } from '../payments/node-call-budget.ts'
import { createPayments, type OnSettled } from '../payments/payments.ts'
import type { HookEvents } from '../products/hook-events.ts'
import { createFinalityWatch } from '../payments/finality-watch.ts'
import { createRecovery } from '../payments/recovery.ts'
import { createSignInLimit, createWalletSignIn } from '../payments/wallet-sign-in.ts'
import { createNonceStore } from '../stores/nonce-store.ts'
import { createOffers } from '../x402/signed-offers.ts'

/** Longer than any call may take, so that recovery never touches a payment that a call is working on. */
const STALE_SECONDS = 600
/** Why a token is revoked whose payment a reorganisation has taken back. */
const REVERSED = 'its payment was reversed'

/** Wires payments, their recovery and their watch. */
export function wirePayments(
  { config, settlement, stores, peers, tokens, metrics, clock, log }: Parts,
  hooks: Pick<HookEvents, 'settled'>,
) {
  const { journal, prices, revocations } = stores
  const readable = readableNetworks(settlement, config)
  const accepts = createErc1271Check(readable, log)
  const nonces = createNonceStore(stores.db, clock.wall)
  const nodeCalls = new NodeCallBudget({ journal, peers })
  const messages = { nonces, accepts, nodeCalls, failures: createSignInLimit(peers) }
  const recipients = recipientsOf(settlement)
  const chains = recipients.map(({ network }) => network.caip2)
  const signIn = createWalletSignIn({ ...messages, baseUrl: config.baseUrl, chains, now: clock.wall })
  const onSettled: OnSettled = ({ callId: call, operation, payer, amount, network }, transaction) =>
    hooks.settled({ call, operation, payer, amount, network, transaction })
  const payments = createPayments({
    recipients,
    baseUrl: config.baseUrl,
    journal,
    log,
    methods: settlement.methods ?? recipients.map(({ network }) => createExactEvm(network)),
    settler: metrics.timed(settlement.settler),
    now: clock.wall,
    formerPrices: prices.former,
    planBlocks: config.allowShallowPlans ? 1 : SAFE_BLOCKS,
    peers,
    nodeCalls,
    signIn,
    onSettled,
  })
  const offers = createOffers({ sign: tokens.signOffer, now: clock.wall, graceSeconds: config.quoteGraceSeconds })
  const recovery = createRecovery({
    journal,
    settler: settlement.settler,
    now: clock.wall,
    log,
    staleSeconds: STALE_SECONDS,
    answerRetentionSeconds: config.answerRetentionSeconds,
    onSettled,
    isWorking: payments.inProgress.isBusy,
  })
  const finality = createFinalityWatch({
    journal,
    settler: settlement.settler,
    lease: stores.lease,
    // The id of a call is that of the token it bought, if it bought one.
    onReversed: ({ callId }) => revocations.revoke(callId, REVERSED, { mayEnd: true }),
    onRestored: ({ callId }) => revocations.restore(callId, REVERSED),
    now: clock.wall,
    log,
  })
  return { payments, quotes: createQuotes(payments, offers), recovery, finality, messages, signIn }
}
