import type { Method } from '../../schemas/types.d.ts'

export const MODEL = 'preflight/3'

/** How a preflight is decided and how it is verified, for the methodology page. common.json#/$defs/Method */
export function preflightMethod(): Method {
  return {
    model: MODEL,
    paragraphs: [
      'A preflight asks the regime and cost products about one order and compares the answers with limits: yours if you send them, otherwise the defaults. Every check is pass, warn, fail or not_checked, with its value and its limit. A check that could not be made never passes.',
      'The ninetieth percentile of the estimate’s range, fees included, is compared with your limit of cost. Where the estimate has no range, the expected cost is compared instead, the check says why, and an order is never allowed if a smaller one fails. An order that is only too large, by its cost, by the turnover of a day or by your account, is reduced to the largest size that passes. Any other failed check denies it, and so does a limit that no size meets. The size is also multiplied by the regime’s position scalar (at most 1) and limited to 1% of a day’s turnover. A smaller size or a warning makes the decision reduce. A schedule never costs more than the market order that it splits, so what is allowed at once is allowed as a schedule. The regime is that of the order’s own market where it is collected, otherwise that of BTC-USD, and the check says which. It applies to crypto markets only.',
      'The answer is signed, so that the executing party can check that its order passed, when, and until when. To verify it, remove signature, write the rest as canonical JSON (RFC 8785), and check the EIP-191 signature against the address at /v1/trade/preflight/signer or, for an older answer, against the previous key of that time. The request is part of the signed content: compare it with the order. An answer with demo true is an example that is delayed by a day; do not act on it. test/lab/verify-preflight.ts does all of this with viem.',
      'The key is not the one that receives payments. Unless the operator configures a key, it is generated on first start and replaced regularly, by default every 90 days. Every key that was ever used stays published with its period.',
    ],
    formulas: [
      {
        name: 'Recommended size',
        formula:
          'min(notional × min(1, position_scalar), 0.01 ADV, max_position_pct/100 × equity, largest size with p90, or without a range total_bps, ≤ max_cost_bps); 0 if denied',
      },
      { name: 'Distance of a limit', formula: '|limit/price - 1| / (σ_day √(60/day_minutes)), at most 5' },
      {
        name: 'Signature',
        formula: 'secp256k1 over keccak256("\\x19Ethereum Signed Message:\\n" + length + canonical JSON)',
        source: 'EIP-191, RFC 8785',
      },
    ],
    tables: [
      {
        caption: 'Checks',
        columns: ['check', 'warn', 'fail'],
        rows: [
          ['regime', 'VOLATILE', null],
          ['cost', null, 'range_bps.p90, or without a range total_bps, above max_cost_bps (25 unless sent)'],
          ['size_vs_adv', 'above 1% of a day’s turnover', 'above 10%'],
          ['size_vs_equity', null, 'above max_position_pct (10 unless sent) of account_equity_usd'],
          ['limit_distance', null, 'further than 5 hourly standard deviations'],
          ['data_freshness', null, 'older than 300 seconds, or older than that at the last close'],
          ['session', null, 'closed'],
          ['funding', 'the position pays more than 5 bps in eight hours, the median of the venues', null],
        ],
      },
    ],
    limits: [
      'A preflight is advice. It places no order, reserves nothing, and does not know your other positions.',
      'It says nothing about direction: a well-priced order of a suitable size can still lose money.',
    ],
    sources: ['EIP-191: Signed Data Standard, version 0x45', 'RFC 8785, JSON Canonicalization Scheme (JCS)'],
  }
}
