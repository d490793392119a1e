/** Reads the payment terms of x402 listings and 402 answers, version 1 and 2, into one format. */
import { textOf } from './listing-fields.ts'
import { isRow, listOf, rowOf } from '../lib/feeds/payloads.ts'
import type { Price } from './listing.ts'

/** Network names of x402 version 1, as CAIP-2. */
const NETWORKS: Readonly<Record<string, string>> = {
  base: 'eip155:8453',
  'base-sepolia': 'eip155:84532',
  ethereum: 'eip155:1',
  mainnet: 'eip155:1',
  sepolia: 'eip155:11155111',
  polygon: 'eip155:137',
  'polygon-amoy': 'eip155:80002',
  arbitrum: 'eip155:42161',
  'arbitrum-one': 'eip155:42161',
  'arbitrum-sepolia': 'eip155:421614',
  optimism: 'eip155:10',
  'optimism-sepolia': 'eip155:11155420',
  avalanche: 'eip155:43114',
  'avalanche-fuji': 'eip155:43113',
  bsc: 'eip155:56',
  celo: 'eip155:42220',
  unichain: 'eip155:130',
  sei: 'eip155:1329',
  'sei-testnet': 'eip155:1328',
  iotex: 'eip155:4689',
  peaq: 'eip155:3338',
  story: 'eip155:1514',
  educhain: 'eip155:41923',
  'skale-base-sepolia': 'eip155:324705682',
  abstract: 'eip155:2741',
  'abstract-testnet': 'eip155:11124',
  solana: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp',
  'solana-devnet': 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1',
}

const USDC = { symbol: 'USDC', decimals: 6 }
/** Dollar tokens by network and contract; EVM contracts in lower case. */
const STABLECOINS: Readonly<Record<string, { readonly symbol: string; readonly decimals: number }>> = {
  'eip155:8453/0x833589fcd6edb6e08f4c7c32d4f71b54bda02913': USDC,
  'eip155:84532/0x036cbd53842c5426634e7929541ec2318f3dcf7e': USDC,
  'eip155:1/0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48': USDC,
  'eip155:1/0xdac17f958d2ee523a2206206994597c13d831ec7': { symbol: 'USDT', decimals: 6 },
  'eip155:137/0x3c499c542cef5e3811e1192ce70d8cc03d5c3359': USDC,
  'eip155:42161/0xaf88d065e77c8cc2239327c5edb3a432268e5831': USDC,
  'eip155:10/0x0b2c639c533813f4aa9d7837caf62653d097ff85': USDC,
  'eip155:43114/0xb97ef9ef8734c71904d8002f8b6bc66dd9c48a6e': USDC,
  'eip155:43113/0x5425890298aed601595a70ab815c96711a31bc65': USDC,
  'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp/EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v': USDC,
  'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1/4zMMC9srt5Ri5X14GAgXhaHii3GnPAEERYPJgZJDncDU': USDC,
}

/** CAIP-2 of a network name: "base" is "eip155:8453". An unknown name stays as it is. */
export function networkOf(name: string): string {
  return NETWORKS[name.toLowerCase()] ?? name
}

/** The dollar token of a network by its symbol, for prices that name no contract. */
export function stablecoinOf(network: string, symbol: string): string | null {
  const found = Object.entries(STABLECOINS).find(
    ([key, coin]) => key.startsWith(`${network}/`) && coin.symbol === symbol,
  )
  return found ? found[0].slice(network.length + 1) : null
}

const isEvm = (network: string): boolean => network.startsWith('eip155:')

/**
 * Dollars of an atomic amount, by integer arithmetic, exact to the last digit that a number can hold.
 *
 * @example dollarsOf('100000', 6) // 0.1
 */
export function dollarsOf(atomic: string, decimals: number): number {
  const digits = atomic.padStart(decimals + 1, '0')
  return Number(`${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`)
}

/** A price in the format of records: the network as CAIP-2, and dollars if the token is a known one. */
export function priceOf(terms: {
  scheme: string
  network: string
  asset: string
  amount: string
  payTo: string
}): Price {
  const network = networkOf(terms.network)
  const coin = STABLECOINS[`${network}/${isEvm(network) ? terms.asset.toLowerCase() : terms.asset}`]
  const amount = terms.amount.replace(/^0+(?=\d)/, '')
  return {
    scheme: terms.scheme,
    network,
    asset: terms.asset,
    asset_symbol: coin?.symbol ?? null,
    amount_atomic: amount,
    amount_usd: coin ? dollarsOf(amount, coin.decimals) : null,
    pay_to: terms.payTo,
  }
}

const ATOMIC = /^\d{1,78}$/
const MOST_PRICES = 20
/** Rejects payment fields longer than this many characters. */
const LONGEST_FIELD = 128

function fieldOf(value: unknown): string | null {
  const text = textOf(value)
  return text !== null && text.length <= LONGEST_FIELD ? text : null
}

/** The accepted payments, with `amount` (version 2) or `maxAmountRequired` (version 1). Skips malformed ones. */
export function pricesOf(accepts: unknown): Price[] {
  const prices: Price[] = []
  for (const row of listOf(accepts).slice(0, MOST_PRICES).filter(isRow)) {
    const stated = row['amount'] ?? row['maxAmountRequired']
    const amount = typeof stated === 'number' && Number.isSafeInteger(stated) ? String(stated) : textOf(stated)
    const [scheme, network, asset, payTo] = ['scheme', 'network', 'asset', 'payTo'].map((name) => fieldOf(row[name]))
    if (!scheme || !network || !asset || !payTo || amount === null || !ATOMIC.test(amount)) continue
    prices.push(priceOf({ scheme, network, asset, amount, payTo }))
  }
  return prices
}

/** The x402 version of the payments by their shape, whatever version they state. */
export function versionOf(accepts: unknown, label: unknown): number | null {
  const rows = listOf(accepts).filter(isRow)
  if (rows.some((row) => 'maxAmountRequired' in row)) return 1
  if (rows.some((row) => 'amount' in row)) return 2
  return label === 1 || label === 2 ? label : null
}

/** The payments of a 402: the body of version 1, or the PAYMENT-REQUIRED header of version 2. Empty if unreadable. */
export function termsOf(body: string, header: string | null): Price[] {
  const texts = [body, header === null ? '' : Buffer.from(header, 'base64').toString('utf8')]
  for (const text of texts.toReversed())
    try {
      const prices = pricesOf(rowOf(JSON.parse(text))['accepts'])
      if (prices.length > 0) return prices
    } catch {
      // The other one may be readable.
    }
  return []
}
