/** Prices: decimal strings in the catalog, atomic units of USDC (6 decimals) everywhere else. */
const DECIMALS = 6
const PRICE = /^(0|[1-9]\d{0,8})(?:\.(\d{1,6}))?$/

/**
 * Atomic units of a price, or null where the text is not one: a seventh decimal, an exponent, a sign, or nothing.
 * @example parsePrice('0.005') → 5000n
 */
export function parsePrice(text: string): bigint | null {
  const match = PRICE.exec(text)
  if (!match) return null
  const [, whole = '0', fraction = ''] = match
  const units = BigInt(whole + fraction.padEnd(DECIMALS, '0'))
  return units > 0n ? units : null
}
