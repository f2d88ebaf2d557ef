// What a process that runs a server has in its environment, before its modules are loaded.

// The HTTP engine's bound on request line and headers. Its default of 4 KiB is too little for cookies and proxies' headers.
process.env.UWS_HTTP_MAX_HEADERS_SIZE ??= '16384'

// Node's default is four threads. A hanging disk blocks a thread for each pending call, and commits need a free one beside
// compression, log look-ups and the reader of a replay. In the lake process DuckDB's calls use them.
process.env.UV_THREADPOOL_SIZE ??= '16'
