import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { fillQuiet, readBarFile, recordingFormat } from '../../../plugins/market/bar-recordings.ts'
import { LONGEST_QUIET_SECONDS } from '../../../plugins/market/bar-replay.ts'
import { figuresOf } from '../../../scripts/bench/regime/model-figures.ts'
import { since, track } from '../../../scripts/bench/regime/model-track.ts'
import { badPrintTrials } from '../../../scripts/bench/regime/model-trials.ts'

const folder = resolve(import.meta.dirname, '../../../../shared/data/regime')
const DAY = 1440

describe('the regime model on recorded bars, out of sample', () => {
  before(function () {
    if (existsSync(folder)) return
    process.stdout.write(`      no recorded bars at ${folder}: skipped\n`)
    this.skip()
  })

  async function read(file: string) {
    const name = recordingFormat(file)!
    const [bars] = (await readBarFile(join(folder, file), name)).values()
    return { bars: fillQuiet(bars!, name.interval_seconds, LONGEST_QUIET_SECONDS), minutes: name.interval_seconds / 60 }
  }

  it('meets its thresholds on a year of ETH minutes', async () => {
    const { bars, minutes } = await read('bitfinex_ethusd_1m_2017.csv.gz')
    const whole = track(bars, minutes)
    const found = figuresOf(since(whole, whole.minute[0]! + 30 * DAY))
    expect(whole.count).to.equal(whole.minute.at(-1)! - whole.minute[0]! + 1)
    expect(found.forward_vol_ratio).to.be.at.least(2.1)
    expect(found.persistence_1h).to.be.at.least(0.96)
    expect(found.volatile_persistence_1h).to.be.at.least(0.92)
    expect(found.flips_per_day).to.be.at.most(1)
    expect(found.share_volatile).to.be.within(0.15, 0.45)
    expect(found.brier).to.be.at.most(0.135)
    expect(found.ece).to.be.at.most(0.03)
    expect(found.scaled_daily_vol_cv! / found.daily_vol_cv!).to.be.at.most(0.75)
    const trials = badPrintTrials(bars, minutes).sort((a, b) => a - b)
    expect(trials[10]).to.be.at.most(5)
  })

  it('meets its thresholds on a year of BTC quarter hours', async () => {
    const { bars, minutes } = await read('binance_btcusdt_15m_2025.csv.gz')
    const whole = track(bars, minutes)
    const found = figuresOf(since(whole, whole.minute[0]! + 30 * DAY))
    expect(found.forward_vol_ratio).to.be.at.least(1.95)
    expect(found.persistence_1h).to.be.at.least(0.935)
    expect(found.volatile_persistence_1h).to.be.at.least(0.89)
    expect(found.ece).to.be.at.most(0.03)
  })
})
