import type { Method } from '../../schemas/types.d.ts'

export const MODEL = 'preflight/1'

/** How a preflight is decided and how it is verified, for the methodology page. common.json#/$defs/Method */
export function preflightMethod(): Method {
  return {
    model: MODEL,
    paragraphs: [
      'A preflight asks the regime and the cost product about one order at one moment and holds the answers to limits: yours where you send them, ours where you do not. Every check says pass, warn, fail or not_checked, with the value and the limit it was held to; a check that could not be made never passes.',
      'Any failure denies. Otherwise the size is multiplied by the regime’s position scalar, never up, and held to 1% of a day’s turnover; a smaller size or a warning makes the decision reduce. The regime is that of BTC-USD and is applied to crypto markets only.',
      'The answer is signed, so that whoever executes can check that the order it was given passed, when, and until when. Take signature away, write the rest as canonical JSON (RFC 8785), and check the EIP-191 signature against the address at /v1/trade/preflight/signer or, for an older answer, against the previous key of its time. The request is part of what is signed: compare it with the order. An answer with demo true is an example, delayed by a day, and binds nobody. scripts/verify-preflight.ts does all of it in ten lines with viem.',
      'The key is not the one that receives payments. It is made on first start, replaced every 90 days, and every key ever used stays listed with its time.',
    ],
    formulas: [
      { name: 'Recommended size', formula: 'min(notional × min(1, position_scalar), 0.01 ADV); 0 where denied' },
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
          ['cost', null, 'total_bps above max_cost_bps (25 unless sent)'],
          ['size_vs_adv', 'above 1% of a day’s turnover', 'above 10%'],
          ['size_vs_equity', null, 'above max_position_pct (10 unless sent) of account_equity_usd'],
          ['limit_distance', null, 'further than 5 hourly standard deviations'],
          ['data_freshness', null, 'older than 300 seconds, or than that at the last close'],
          ['session', null, 'closed'],
          ['funding', 'a perpetual that pays more than 5 bps in eight hours, the median of the venues', null],
        ],
      },
    ],
    limits: [
      'A preflight advises. It places nothing, holds nothing, and knows nothing of your other positions.',
      'It says nothing of direction: a well-priced order of a fitting size can still lose.',
    ],
    sources: ['EIP-191: Signed Data Standard, version 0x45', 'RFC 8785, JSON Canonicalization Scheme (JCS)'],
  }
}
