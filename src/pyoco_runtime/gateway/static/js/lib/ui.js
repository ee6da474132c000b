// The only importer of vendor/: what every view draws with.
export {
  Component, createContext, h, html, render,
  useCallback, useContext, useEffect, useErrorBoundary, useLayoutEffect, useMemo, useReducer, useRef, useState,
} from "../../vendor/htm-preact-3.1.1.js";
