/** Formats an atomic amount as dollars with at least two decimals: 5000n is "0.005", 50000000n is "50.00". */
export function dollars(amount: bigint): string {
  const digits = amount.toString().padStart(7, '0')
  const fraction = digits.slice(-6).replace(/0{1,4}$/, '')
  return `${digits.slice(0, -6)}.${fraction}`
}
