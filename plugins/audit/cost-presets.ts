/** Trading costs of a kind of market, in basis points per side. The methodology page publishes them with their basis. */
export interface Preset {
  readonly halfSpread: number
  readonly slippage: number
  readonly commission: number
  /** The source of the figures. */
  readonly basis: string
}

export const PRESETS = {
  large_cap: {
    halfSpread: 1.5,
    slippage: 1,
    commission: 0.5,
    basis: 'measured: half of the 1.6 to 5.7 bps quoted on AAPL, IBM, AIG, TWX, NWSA, FOXA and GOOG',
  },
  etf_liquid: {
    halfSpread: 0.5,
    slippage: 0.5,
    commission: 0.5,
    basis: 'measured: half the spread of SPY, 0.1 to 0.3 bps',
  },
  mid_cap: { halfSpread: 4, slippage: 2, commission: 0.5, basis: 'assumed' },
  small_cap: {
    halfSpread: 12,
    slippage: 6,
    commission: 1,
    basis: 'assumed; Novy-Marx and Velikov (2016) find costs of about 1% of one-sided monthly turnover',
  },
  micro_cap: { halfSpread: 40, slippage: 20, commission: 2, basis: 'assumed' },
  crypto_major: {
    halfSpread: 0.5,
    slippage: 1,
    commission: 10,
    basis: 'measured: spread, and impact of 100,000 USD taken from the book, 0.1 to 0.7 bps; spot taker fee',
  },
  crypto_perp: {
    halfSpread: 0.5,
    slippage: 1,
    commission: 5,
    basis: 'as crypto_major, with the taker fee of perpetuals; without funding',
  },
  crypto_alt: { halfSpread: 4, slippage: 5, commission: 10, basis: 'measured: 3.3 bps quoted on ADA; spot taker fee' },
  fx_major: { halfSpread: 0.5, slippage: 0.3, commission: 0.2, basis: 'assumed' },
  futures_liquid: { halfSpread: 0.6, slippage: 0.4, commission: 0.3, basis: 'assumed' },
  zero: { halfSpread: 0, slippage: 0, commission: 0, basis: 'no costs, to see gross figures' },
} as const satisfies Record<string, Preset>

export type PresetName = keyof typeof PRESETS
export const DEFAULT_PRESET: PresetName = 'large_cap'

/** Total cost per side of a preset, in basis points, without the extra costs of the request. For large_cap it is 3. */
export function costPerSide({ halfSpread, slippage, commission }: Preset): number {
  return Math.round((halfSpread + slippage + commission) * 1e9) / 1e9
}
