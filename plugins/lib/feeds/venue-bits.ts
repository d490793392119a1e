/** Which venues agreed on a bar, and which did not, as one number. The market stores it, and so does what is made of its bars. */

/** Venues that traded at other prices are counted from this bit on. */
const DISSENT_SHIFT = 16

/**
 * One number for the bits of the venues that agreed, and of those that traded at other prices.
 *
 * @example venueBits([0, 2], [1]) // 0b101 + 0b10 * 2 ** 16
 */
export function venueBits(agreed: readonly number[], dissenting: readonly number[]): number {
  return maskOf(agreed) + maskOf(dissenting) * 2 ** DISSENT_SHIFT
}

/** The venues behind a number of `venueBits`; `names` has the venue of each bit. */
export function venuesOfBits<Name>(
  bits: number,
  names: readonly Name[],
): { readonly agreed: Name[]; readonly dissenting: Name[] } {
  const named = (mask: number): Name[] => names.filter((_, bit) => Math.floor(mask / 2 ** bit) % 2 === 1)
  return { agreed: named(bits % 2 ** DISSENT_SHIFT), dissenting: named(Math.floor(bits / 2 ** DISSENT_SHIFT)) }
}

function maskOf(bits: readonly number[]): number {
  return bits.reduce((mask, bit) => mask + 2 ** bit, 0)
}
