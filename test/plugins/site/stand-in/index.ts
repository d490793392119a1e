/** Replaces the products that the pages call. With `settings.down` every call fails. */
import { definePlugin, Unavailable } from 'tollgate/plugin'

const SNAPSHOT = {
  as_of: '2026-11-19T09:41:00Z',
  symbol: 'BTC-USD',
  regime: 'VOLATILE',
  confidence: 0.874,
  position_scalar: 0.75,
  forecast_vol: 0.6,
  boundary_vol: 0.4,
  no_trade_band: { low: 0.6, high: 0.9, turns_per_year: 48 },
}

const METHOD = {
  model: 'har-schmitt/1',
  paragraphs: ['A forecast, turned into a probability.'],
  formulas: [{ name: 'Variance proxy', formula: 'q = r^2 < 1', source: 'Corsi (2009)' }],
  claims: [
    {
      claimed: 'Twice as volatile after VOLATILE',
      measured: '1.8 to 2.3',
      met: false,
      on: '2 recordings',
      start: '2025-01-01T00:00:00Z',
      end: '2025-12-31T00:00:00Z',
      cases: 12_345,
      data_mode: 'replay',
      measured_on: '2026-11-30',
    },
    {
      claimed: 'Noise is not plausible',
      measured: '3 of 200',
      met: true,
      on: 'simulations',
      start: null,
      end: null,
      cases: 200,
      data_mode: 'sample',
      measured_on: '2026-11-30',
    },
  ],
  tables: [
    { id: 'sizing', caption: 'Less even: ETH 2017.', columns: ['recording', 'turns'], rows: [['BTC 2025', 47]] },
    {
      caption: 'Out of sample.',
      columns: ['Model', 'Ratio'],
      rows: [
        ['HAR', 2.26],
        ['GARCH', null],
      ],
    },
  ],
  limits: ['No direction.'],
  sources: ['Corsi (2009).'],
}

export default definePlugin({
  name: 'stand-in',
  settings: { type: 'object', properties: { down: { type: 'boolean' } }, additionalProperties: false },
  setup({ settings }) {
    const answer = (value: unknown) => () => {
      if (settings['down'] === true) throw new Unavailable()
      return value
    }
    return {
      handlers: {
        getRegimeSample: answer(SNAPSHOT),
        getRegimeCurrent: answer(SNAPSHOT),
        getRegimeDay: answer({}),
        getRegimeMethod: answer(METHOD),
        joinFounding: answer({}),
      },
      facts: async () => ({ snapshots: 417_512, forward_vol_ratio: 2.1, brier: null, window_days: 90 }),
    }
  },
})
