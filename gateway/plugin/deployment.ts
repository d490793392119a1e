/** How products are fed: made-up data, recorded data, or the public sources. */
export type DataMode = 'sample' | 'replay' | 'online'

/** How the recorded times of a replay are moved. */
export interface ReplayShift {
  /** REPLAY_SHIFT as it was configured. A recording that was stored under another one is read again. */
  readonly setting: string
  /**
   * Seconds to add to every recorded time; 0 keeps them. Null means: each product moves its recording so that it goes on
   * now.
   */
  readonly seconds: number | null
}

/** Settings of the whole deployment, by name. */
export interface Deployment {
  readonly data_mode: DataMode
  /** The folder of recordings in replay mode. */
  readonly replay_dir?: string
  /** REPLAY_SHIFT as it was configured. */
  readonly replay_shift: string
  /**
   * What REPLAY_SHIFT means: the seconds to add to every recorded time, "0" to keep them. Absent if each product moves its
   * recording so that it goes on now.
   */
  readonly replay_shift_seconds?: string
}
