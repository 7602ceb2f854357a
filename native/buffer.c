/*
 * The Python module sparknet.native._buffer: a base class that gives a Python class the buffer
 * protocol. Python has __buffer__ for this from 3.12 on; we serve 3.10 and 3.11 too.
 *
 * Buffer protocol slots joined the stable ABI in 3.11, but work in any 3.10: what its
 * headers hide from extensions for 3.10 is declared here.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

enum { GETBUFFER_SLOT = 1 };

/* The head of Py_buffer. */
typedef struct buffer_view {
    void* data;
    PyObject* owner;
} buffer_view;

extern int PyObject_GetBuffer(PyObject* exporter, buffer_view* view, int flags);

static int raise_now(void* error) {
    PyErr_SetObject((PyObject*)Py_TYPE((PyObject*)error), error);
    Py_DECREF((PyObject*)error);
    return -1;
}

/* The main thread raises an error as soon as it runs Python again.  Signals have their handlers
 * there, which raise wherever Python happens to run. */
static int raise_later(PyObject* error) {
    Py_INCREF(error);
    if (Py_AddPendingCall(raise_now, error) == 0) return 0;
    Py_DECREF(error);
    return -1;
}

/* The error that is set, which no longer is. */
static PyObject* taken_error(void) {
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return error;
}

/* Hands the request on to the object that the method _exporter returns.  numpy drops whatever is
 * raised here and reads the memory in another way; so where an error does not come again, it is a
 * signal's, and is raised when numpy is done. */
static int get_buffer(PyObject* self, buffer_view* view, int flags) {
    PyObject *exporter = PyObject_CallMethod(self, "_exporter", NULL), *error = NULL;
    view->owner = NULL;
    if (exporter == NULL) {
        error = taken_error();
        exporter = PyObject_CallMethod(self, "_exporter", NULL);
    }
    int status = exporter == NULL ? -1 : PyObject_GetBuffer(exporter, view, flags);
    Py_XDECREF(exporter);
    if (status == 0 && error != NULL) raise_later(error);
    Py_XDECREF(error);
    return status;
}

/* ISO C has no cast from a function to void *; Python needs one. */
#define SLOT(function) __extension__(void*)(function)

static PyType_Slot slots[] = {
    {Py_tp_doc, (void*)"A class whose method _exporter returns what memoryview(self) shows."},
    {GETBUFFER_SLOT, SLOT(get_buffer)},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "sparknet.native._buffer.Buffer",
    .basicsize = (int)sizeof(PyObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    "_buffer",
    "The buffer protocol for Python classes.",
    -1,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
};

PyMODINIT_FUNC PyInit__buffer(void) {
    PyObject* self = PyModule_Create(&module);
    if (self == NULL) return NULL;
    PyObject* type = PyType_FromSpec(&spec);
    if (type != NULL && PyModule_AddObject(self, "Buffer", type) == 0) return self;
    Py_XDECREF(type);
    Py_DECREF(self);
    return NULL;
}
