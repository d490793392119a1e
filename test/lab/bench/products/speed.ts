import { edgeSpread } from '../../../../plugins/lib/quant/spread-estimators.ts'
import { probabilityOfOverfitting } from '../../../../plugins/lib/quant/backtest-overfitting.ts'
import { seededRandom } from '../../../../plugins/lib/quant/seeded-random.ts'
import { stationaryBootstrap } from '../../../../plugins/lib/quant/bootstrap.ts'
import checkBarQuality from '../../../../plugins/qc/bar-quality.ts'
import { bestCpuSeconds } from '../cpu-time.ts'
import { atMost, type Measure } from '../../../support/measure.ts'
import { readBarsFile } from '../../../support/recorded-data.ts'

const PART = 'speed'

/** Measures CPU seconds for the largest accepted inputs. */
export async function measureSpeed(): Promise<Measure[]> {
  const bars = readBarsFile('regime/bitfinex_btcusd_1m_2017.csv.gz').slice(-50_000)
  const column = (field: 'o' | 'h' | 'l' | 'c'): Float64Array => Float64Array.from(bars, (bar) => bar[field]!)
  const day = { open: column('o'), high: column('h'), low: column('l'), close: column('c') }
  const random = seededRandom(1)
  const returns = (count: number): Float64Array => Float64Array.from({ length: count }, () => random() - 0.49)
  const trials = Array.from({ length: 256 }, () => returns(2000))
  const trades = returns(200_000)
  return [
    atMost(PART, 'bar quality, 50,000 bars, seconds', await bestCpuSeconds(() => checkBarQuality({ bars })), 1),
    atMost(PART, 'EDGE, 50,000 bars, seconds', await bestCpuSeconds(() => edgeSpread(day)), 0.2),
    atMost(
      PART,
      'PBO, 256 trials of 2,000 periods in 16 blocks, seconds',
      await bestCpuSeconds(() => probabilityOfOverfitting(trials)),
      2,
    ),
    atMost(
      PART,
      'bootstrap, 200,000 trades, 2,000 draws, seconds',
      await bestCpuSeconds(() => stationaryBootstrap(trades)),
      3,
    ),
  ]
}
