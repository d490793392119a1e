/** The settings of the deployment that say where products take their data from. */
import type { PluginContext } from 'tollgate/plugin'

/** Made-up data, recorded data, or the public sources. */
export type DataMode = 'sample' | 'replay' | 'online'

export interface DataSettings {
  readonly dataMode: DataMode
  /** The folder of recordings in replay mode; undefined in the other modes. */
  readonly replayDir: string | undefined
  /** How recorded times are moved: "auto", "none", "frozen[:time]" or seconds. */
  readonly replayShift: string
}

/** @example dataSettings(context) // { dataMode: 'sample', replayDir: undefined, replayShift: 'auto' } */
export function dataSettings({ deployment }: Pick<PluginContext, 'deployment'>): DataSettings {
  return {
    dataMode: (deployment['data_mode'] ?? 'sample') as DataMode,
    replayDir: deployment['replay_dir'],
    replayShift: deployment['replay_shift'] ?? 'auto',
  }
}
