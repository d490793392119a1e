/** The settings of the deployment for the source of the data: sample, replay or online. */
import type { DataMode, PluginContext, ReplayShift } from 'tollgate/plugin'

export interface DataSettings {
  readonly dataMode: DataMode
  /** The folder of recordings in replay mode; undefined in the other modes. */
  readonly replayDir: string | undefined
  readonly replayShift: ReplayShift
}

/**
 * Reads the settings of the deployment.
 *
 * @example dataSettings(context).dataMode // "sample"
 */
export function dataSettings({ deployment }: Pick<PluginContext, 'deployment'>): DataSettings {
  const {
    data_mode: dataMode,
    replay_dir: replayDir,
    replay_shift: setting,
    replay_shift_seconds: seconds,
  } = deployment
  return { dataMode, replayDir, replayShift: { setting, seconds: seconds === undefined ? null : Number(seconds) } }
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
