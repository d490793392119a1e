/** Charts and waterfalls. A handler passes them to its view, where the mixins of views/chart.pug draw them. */

/** The role of a colour. views/assets/chart-layout.css assigns the colours. */
export type ChartTone = 'main' | 'second' | 'third' | 'muted' | 'good' | 'bad'

export interface ChartAxis {
  readonly label: string
  /** Times are epoch milliseconds, UTC. The default is "linear". */
  readonly scale?: 'linear' | 'log' | 'time'
  readonly unit?: 'number' | 'percent' | 'bps' | 'times'
  /** The range that the axis shows at least. Data outside it widen the axis. */
  readonly domain?: readonly [number, number]
}

export interface ChartSeries {
  readonly name: string
  readonly tone: ChartTone
  readonly kind?: 'line' | 'step' | 'area' | 'dashed' | 'points'
  readonly points: readonly (readonly [x: number, y: number])[]
}

export interface Chart {
  /** Unique on its page. */
  readonly id: string
  readonly title: string
  /** Describes the picture for readers who cannot see it. */
  readonly description: string
  readonly x: ChartAxis
  readonly y: ChartAxis
  readonly series: readonly ChartSeries[]
  /** Ranges of x, each filled with the colour of its tone. */
  readonly bands?: readonly { readonly from: number; readonly to: number; readonly tone: ChartTone }[]
  readonly bandNames?: readonly { readonly name: string; readonly tone: ChartTone }[]
  /** Single points with a label. */
  readonly marks?: readonly { readonly at: readonly [x: number, y: number]; readonly label: string }[]
  /** The same data as a table. By default the table lists every point of every series. */
  readonly table?: ChartTable
}

export interface ChartTable {
  readonly columns: readonly string[]
  readonly rows: readonly (readonly (string | number | null)[])[]
}

/** One bar of a waterfall chart. */
export interface WaterfallStep {
  readonly label: string
  readonly amount: number
  /** True for a bar that starts at zero and shows the sum of the bars before it. */
  readonly total?: boolean
}
