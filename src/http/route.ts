import type { AgentContext, Context, HttpAnswer, Method, ReaderContext } from './context.ts'
import type { OperationDocs } from './docs/operation-docs.ts'

interface RouteFor<Access extends string, Told extends Context> {
  access: Access
  handle(context: Told): HttpAnswer | Promise<HttpAnswer>
  method: Method
  /** A literal path, or one that ends with `/{id}`. */
  path: string
  /** One line for the documents. */
  summary: string
  /** What the API description tells beside the summary. */
  docs: OperationDocs
  /** Largest body in bytes; BODY_BYTES_MAX unless set. */
  bodyBytesMax?: number
  /** Time that a body may take to arrive; seven seconds unless set. */
  bodyMsMax?: number
  /** Content types that the body may have; JSON unless set. */
  bodyTypes?: readonly string[]
  /**
   * Counts the request against a limit of this route alone, before any of the body is read.
   * @returns the headers that describe the limit. @throws ServiceError with status 429.
   */
  countLimit?(context: Context): Record<string, string>
  /**
   * For a route that writes: the paths whose cached answers become invalid; unset: all paths. An empty list: cached answers
   * may be as old as the cache allows.
   */
  changes?: readonly string[]
  /**
   * For a route that may write often, any rows and their order: paths whose cached answers become invalid too, whatever they say of
   * themselves, but of a rapid sequence of writes only DEAR_INVALIDATIONS_PER_SECOND do so, since an answer costs as much as a write.
   */
  changesDear?: readonly string[]
  /** Its answers are of the market: they say where that is approximate. */
  answersMarket?: true
  /** Without a key, programs of this computer get more from it where the server has no key for that: one for researchers is open to
   *  them. */
  opensLocally?: true
  /** What each node of a cluster has of its own: a reader answers it itself. */
  isOfNode?: true
  /** For a route with a body: its handler is told of a disconnect (`onGone`). Other handlers with a body are not. */
  watchesClient?: true
  /** It goes through the whole store: its answer may take as long as its client waits. */
  isLong?: true
}

/** A route that an agent calls with its key. */
type AgentRoute = RouteFor<'agent', AgentContext>

/**
 * A read whose answer depends on who asks. No key is needed, reads are counted as those of `read`, and its handler is told who
 * calls. So its answers are never shared: neither the response cache nor a compressed form serves two readers.
 */
export type PersonalRoute = RouteFor<'personal', ReaderContext>

/** For researchers and the operator: the handler is told which researcher calls, by the key; null for the operator. */
type ResearcherRoute = RouteFor<'researcher', ReaderContext>

/**
 * Any other route: its handler is not told who calls. `open`: no key is needed. `read`: no key is needed, but reads are
 * counted, and a key raises the limit. `feed`, `admin`: the feed key or the operator's key. `forwarded`: another process carries
 * the request out, and checks its key there.
 */
export type PlainRoute = RouteFor<'open' | 'read' | 'feed' | 'admin' | 'forwarded', Context>

export type Route = AgentRoute | PersonalRoute | ResearcherRoute | PlainRoute

/** Whether a request counts against the limit of reads. */
export const isRead = ({ access }: Route): boolean => access === 'read' || access === 'personal'

/** Whether a successful answer means that data has changed. */
export const isWrite = (route: Route): boolean => route.method !== 'GET' && !isRead(route)

/** Whether the answer is the same for everybody, with or without a key. */
export const isPublic = ({ access }: Route): boolean => access === 'open' || access === 'read'
