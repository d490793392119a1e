/** REPLAY_SHIFT, parsed: how the recorded times of DATA_MODE=replay are moved, and whether the clock of the data stops. */
export interface ReplayShift {
  /** The setting as it was configured. Products store it with a recording, and load the recording again if it differs. */
  readonly setting: string
  /**
   * Seconds to add to every recorded time. Null means: each product moves its recording so that it goes on now. 0 keeps
   * the recorded times.
   */
  readonly seconds: number | null
  /** Where the clock of the data stops: at a time, or at the start of the process. Null means that it runs. */
  readonly frozenAt: Date | 'start' | null
}

/**
 * Parses REPLAY_SHIFT.
 *
 * | Setting         | `seconds` | `frozenAt` |
 * | --------------- | --------- | ---------- |
 * | `auto`          | null      | null       |
 * | `none`          | 0         | null       |
 * | `frozen`        | null      | `start`    |
 * | `frozen:<time>` | 0         | the time   |
 * | a number        | that many | null       |
 *
 * Throws RangeError if the setting is none of these or the time is not valid.
 *
 * @example parseReplayShift('-3600') // { setting: '-3600', seconds: -3600, frozenAt: null }
 */
export function parseReplayShift(setting: string): ReplayShift {
  if (setting === 'auto') return { setting, seconds: null, frozenAt: null }
  if (setting === 'none') return { setting, seconds: 0, frozenAt: null }
  if (setting === 'frozen') return { setting, seconds: null, frozenAt: 'start' }
  if (/^-?\d+$/.test(setting)) return { setting, seconds: Number(setting), frozenAt: null }
  const [, text] = /^frozen:(.+)$/.exec(setting) ?? []
  if (text === undefined) throw new RangeError(`REPLAY_SHIFT: ${setting} is not auto, none, frozen or a number.`)
  const time = new Date(text)
  if (Number.isNaN(time.getTime())) throw new RangeError(`REPLAY_SHIFT: ${text} is not an ISO 8601 time.`)
  return { setting, seconds: 0, frozenAt: time }
}
