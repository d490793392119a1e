/** The settings of the deployment that say where products take their data from: sample, replay or online. */
import type { PluginContext } from 'tollgate/plugin'

/** Made-up data, recorded data, or the public sources. */
export type DataMode = 'sample' | 'replay' | 'online'

/** How the recorded times of a replay are moved: REPLAY_SHIFT, parsed. The gateway's data clock does the freezing. */
export interface ReplayShift {
  /** The setting as it was configured. A recording that was stored under another one is read again. */
  readonly setting: string
  readonly kind: 'auto' | 'none' | 'frozen' | 'seconds'
  /** Seconds to add to every recorded time. Null means: move the recording so that it goes on now. */
  readonly seconds: number | null
}

export interface DataSettings {
  readonly dataMode: DataMode
  /** The folder of recordings in replay mode; undefined in the other modes. */
  readonly replayDir: string | undefined
  readonly replayShift: ReplayShift
}

/** @example dataSettings(context).dataMode // "sample" */
export function dataSettings({ deployment }: Pick<PluginContext, 'deployment'>): DataSettings {
  return {
    dataMode: (deployment['data_mode'] ?? 'sample') as DataMode,
    replayDir: deployment['replay_dir'],
    replayShift: parseReplayShift(deployment['replay_shift'] ?? 'auto'),
  }
}

/**
 * Parses REPLAY_SHIFT. `auto` moves a recording into the present, `frozen` does the same and stops the clock. `none` and
 * `frozen:<time>` keep the recorded times, and so does any text that is none of these. A number is added as seconds.
 *
 * @example parseReplayShift('-3600') // { setting: '-3600', kind: 'seconds', seconds: -3600 }
 */
export function parseReplayShift(setting: string): ReplayShift {
  if (setting === 'auto') return { setting, kind: 'auto', seconds: null }
  if (setting === 'frozen') return { setting, kind: 'frozen', seconds: null }
  if (setting.startsWith('frozen:')) return { setting, kind: 'frozen', seconds: 0 }
  if (/^-?\d+$/.test(setting)) return { setting, kind: 'seconds', seconds: Number(setting) }
  return { setting, kind: 'none', seconds: 0 }
}

/**
 * Seconds to add to a recording at `asOf`. Without a fixed shift the recording loops: it starts at `start` and begins
 * anew after `period` seconds, so that there is always a newest record no older than a period.
 *
 * @example loopShift(parseReplayShift('auto'), { start: 1000, period: 3600 }, 9000) // 7200
 */
export function loopShift(
  { seconds }: ReplayShift,
  { start, period }: { readonly start: number; readonly period: number },
  asOf: number,
): number {
  return seconds ?? Math.floor((asOf - start) / period) * period
}
