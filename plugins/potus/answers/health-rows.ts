/** The health of all sources, written as JSON only when it changes. */
import type { DataMode } from 'tollgate/plugin'
import type { PotusFeeds } from '../../../schemas/types.d.ts'
import type { Source } from '../sources/source.ts'
import { HeldValues, overlapOf } from '../store/held-values.ts'
import { feedHealth, type FeedStatus, type SourceFigures, statusAround } from './feed-health.ts'

type Statuses = readonly FeedStatus[]

/** The statuses of sources as of a moment. They are the same array as long as the figures and all statuses are the same. */
export class SourceStatuses {
  readonly #sources: readonly Source[]
  readonly #dataMode: DataMode
  readonly #known = new WeakMap<readonly SourceFigures[], HeldValues<Statuses>>()

  constructor(sources: readonly Source[], dataMode: DataMode) {
    this.#sources = sources
    this.#dataMode = dataMode
  }

  /** The statuses in the order of the sources, whose figures as of the moment are given. */
  of(figures: readonly SourceFigures[], asOf: number): Statuses {
    const known = this.#known.get(figures) ?? new HeldValues()
    this.#known.set(figures, known)
    return known.at(asOf, () => {
      const held = this.#sources.map((source, i) =>
        statusAround(source, figures[i] as SourceFigures, asOf, this.#dataMode),
      )
      return { ...overlapOf(held), value: held.map(({ value }) => value) }
    }).value
  }
}

/** Rows of an answer, as JSON separated by commas. */
export interface RowsText {
  readonly count: number
  readonly text: Buffer
}

export class HealthRows {
  readonly #sources: readonly Source[]
  readonly #statuses: SourceStatuses
  /** The JSON of each row up to its status, which comes last and changes with time alone. */
  readonly #begun = new WeakMap<SourceFigures, string>()
  readonly #written = new WeakMap<Statuses, Map<FeedStatus | undefined, RowsText>>()

  constructor(sources: readonly Source[], dataMode: DataMode) {
    this.#sources = sources
    this.#statuses = new SourceStatuses(sources, dataMode)
  }

  /** The rows of the sources with this status, or of all. `figures` are those of the sources, as of the moment. */
  of(figures: readonly SourceFigures[], asOf: number, status: FeedStatus | undefined): RowsText {
    const statuses = this.#statuses.of(figures, asOf)
    const written = this.#written.get(statuses) ?? new Map<FeedStatus | undefined, RowsText>()
    this.#written.set(statuses, written)
    const rows = written.get(status) ?? this.#write(figures, statuses, status)
    written.set(status, rows)
    return rows
  }

  #write(figures: readonly SourceFigures[], statuses: Statuses, only: FeedStatus | undefined): RowsText {
    const rows = statuses.flatMap((status, i) =>
      only === undefined || status === only
        ? [`${this.#beginning(this.#sources[i] as Source, figures[i] as SourceFigures)}${JSON.stringify(status)}}`]
        : [],
    )
    return { count: rows.length, text: Buffer.from(rows.join(',')) }
  }

  #beginning(source: Source, figures: SourceFigures): string {
    const known = this.#begun.get(figures)
    if (known !== undefined) return known
    const health: Omit<PotusFeeds['feeds'][number], 'status'> = feedHealth(source, figures)
    const text = `${JSON.stringify(health).slice(0, -1)},"status":`
    this.#begun.set(figures, text)
    return text
  }
}
