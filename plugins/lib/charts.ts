/**
 * Charts and waterfalls as the views of this project draw them. A handler passes them to its view as data.
 *
 * gateway/http/draw-chart.ts declares the same shapes, because the gateway imports no plugin and the public plugin
 * API has no charts. test/plugins/audit/charts.test.ts hands charts of a plugin to the gateway's `draw`, so that the
 * compiler reports a plugin shape that the gateway does not accept.
 */

/** The role of a colour. views/assets/chart-layout.css assigns the colours. */
export type Tone = 'main' | 'second' | 'third' | 'muted' | 'good' | 'bad'

export interface Axis {
  readonly label: string
  /** Times are epoch milliseconds, UTC. The default is "linear". */
  readonly scale?: 'linear' | 'log' | 'time'
  readonly unit?: 'number' | 'percent' | 'bps' | 'times'
  /** The smallest range that the axis shows. Data outside it widen the axis. */
  readonly domain?: readonly [number, number]
}

export interface Series {
  readonly name: string
  readonly tone: Tone
  readonly kind?: 'line' | 'step' | 'area' | 'dashed' | 'points'
  readonly points: readonly (readonly [x: number, y: number])[]
}

export interface Chart {
  /** Unique on its page. */
  readonly id: string
  readonly title: string
  /** Describes the picture for readers who cannot see it. */
  readonly description: string
  readonly x: Axis
  readonly y: Axis
  readonly series: readonly Series[]
  /** Ranges of x, each filled with the colour of its tone. */
  readonly bands?: readonly { readonly from: number; readonly to: number; readonly tone: Tone }[]
  readonly bandNames?: readonly { readonly name: string; readonly tone: Tone }[]
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
export interface Step {
  readonly label: string
  readonly amount: number
  /** True for a bar that starts at zero and shows the sum of the bars before it. */
  readonly total?: boolean
}
