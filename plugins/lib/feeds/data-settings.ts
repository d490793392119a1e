/** The settings of the deployment for the source of the data: sample, replay or online. */
import type { PluginContext } from 'tollgate/plugin'

/** Made-up data, recorded data, or the public sources. */
export type DataMode = 'sample' | 'replay' | 'online'

/** How the recorded times of a replay are moved. The gateway parses REPLAY_SHIFT and freezes the data clock if it says so. */
export interface ReplayShift {
  /** The setting as it was configured. A recording that was stored under another one is read again. */
  readonly setting: string
  /** Seconds to add to every recorded time. Null for `auto`: the product moves the recording to the present. */
  readonly seconds: number | null
}

export interface DataSettings {
  readonly dataMode: DataMode
  /** The folder of recordings in replay mode; undefined in the other modes. */
  readonly replayDir: string | undefined
  readonly replayShift: ReplayShift
}

/**
 * Reads the settings of the deployment, with the defaults of the gateway.
 *
 * @example dataSettings(context).dataMode // "sample"
 */
export function dataSettings({ deployment }: Pick<PluginContext, 'deployment'>): DataSettings {
  const seconds = deployment['replay_shift_seconds']
  return {
    dataMode: (deployment['data_mode'] ?? 'sample') as DataMode,
    replayDir: deployment['replay_dir'],
    replayShift: {
      setting: deployment['replay_shift'] ?? 'auto',
      seconds: seconds === undefined ? null : Number(seconds),
    },
  }
}

/**
 * Seconds to add to a recording at `asOf`. Without a fixed shift the recording loops: it starts at `start` and begins
 * again after `period` seconds, so that there is always a newest record no older than a period.
 *
 * @example loopShift({ setting: 'auto', seconds: null }, { start: 1000, period: 3600 }, 9000) // 7200
 */
export function loopShift(
  { seconds }: ReplayShift,
  { start, period }: { readonly start: number; readonly period: number },
  asOf: number,
): number {
  return seconds ?? Math.floor((asOf - start) / period) * period
}
